/** The items of a list separated by commas, trimmed and without empty ones. */
export function splitList(text: FormDataEntryValue | null): string[] {
  if (typeof text !== 'string') return []
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}
