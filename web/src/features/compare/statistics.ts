/** The mean of several runs, and how far they are apart. */
export interface Stat {
  mean: number
  /** Of the sample (n − 1); one run has none. */
  sd: number | undefined
  count: number
}

/** Of the values that there are; undefined without any. */
export function stat(values: readonly (number | undefined)[]): Stat | undefined {
  const found = values.filter((value) => value !== undefined)
  if (found.length === 0) return undefined
  const mean = found.reduce((sum, value) => sum + value, 0) / found.length
  const squares = found.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return { mean, sd: found.length > 1 ? Math.sqrt(squares / (found.length - 1)) : undefined, count: found.length }
}
