/** The lines' colours in order: custom properties, read at every drawing so that a theme switches live. */
export const LINE_COLOURS = ['--accent', '--second']

export function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property)
}
