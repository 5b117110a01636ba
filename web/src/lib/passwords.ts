/** The least length of a password; the server requires the same. */
export const LEAST_PASSWORD = 12
