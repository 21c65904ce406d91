/** The names under which a node may be chosen: in `policy.use`, for a key, or by `X-Fleet-Policy`. */
export const POLICY_NAMES = [
  'residency',
  'warmth',
  'steady',
  'round-robin',
  'least-connections',
  'power-of-two',
  'random',
] as const

export type PolicyName = (typeof POLICY_NAMES)[number]
