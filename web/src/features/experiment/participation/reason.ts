/** What a form says in `reason`, null if nothing. */
export function reasonOf(form: FormData): string | null {
  const text = form.get('reason')
  return typeof text === 'string' && text.trim() !== '' ? text : null
}
