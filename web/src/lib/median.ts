/** The middle value, or the mean of the two in the middle; undefined without values. */
export function median(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined
  const ordered = values.toSorted((a, b) => a - b)
  const middle = ordered.length / 2
  const around = ordered.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1)
  return around.reduce((sum, value) => sum + value, 0) / around.length
}
