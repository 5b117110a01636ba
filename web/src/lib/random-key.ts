const BYTES = 16

/** 128 random bits in hex. `randomUUID` is missing where a page came by plain http from another machine. */
export function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
