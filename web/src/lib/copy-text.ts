/** Copies text; false when the browser refuses. */
export async function copyText(text: string): Promise<boolean> {
  // The clipboard interface is for secure origins alone, and many services run on plain HTTP inside a site.
  if (!window.isSecureContext) return copyBySelection(text)
  return navigator.clipboard.writeText(text).then(
    () => true,
    () => false,
  )
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'visually-hidden'
  document.body.append(area)
  area.select()
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way on a plain HTTP origin
  const copied = document.execCommand('copy')
  area.remove()
  return copied
}
