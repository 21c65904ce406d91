/** What moves the cursor, ends a line, turns the direction of text or hides in it. Names come from clients and nodes. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu

/** One line as a terminal may show it: whatever could command the terminal is U+FFFD. */
export const printable = (line: string): string => line.replace(unprintable, '\ufffd')
