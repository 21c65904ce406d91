/** Until a model's own ratio has been measured. */
export const BYTES_PER_TOKEN = 4
/** What a picture costs in the prompt, whatever its size: models scale it to a fixed number of patches. */
const TOKENS_PER_IMAGE = 768

/** Tokens of a prompt, by the bytes of its text and its pictures. */
export const tokensOf = (bytes: number, images: number, bytesPerToken = BYTES_PER_TOKEN): number =>
  Math.ceil(bytes / bytesPerToken) + images * TOKENS_PER_IMAGE
