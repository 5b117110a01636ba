const GAP = 6

/** Puts a popover below its button, right edges in line, and never out of the window. */
export function placeBelow(button: HTMLElement, popover: HTMLElement): void {
  const { bottom, right } = button.getBoundingClientRect()
  popover.style.top = `${bottom + GAP}px`
  popover.style.left = `${Math.max(GAP, right - popover.offsetWidth)}px`
}
