/** Hands the browser a file to save. */
export function download(name: string, content: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  // The browser reads the address after the click has returned.
  setTimeout(() => {
    URL.revokeObjectURL(link.href)
  }, 10_000)
}
