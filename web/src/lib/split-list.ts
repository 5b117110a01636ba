/** What a field holds by comma, without blanks around and without nothing between. */
export function splitList(text: FormDataEntryValue | null): string[] {
  if (typeof text !== 'string') return []
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}
