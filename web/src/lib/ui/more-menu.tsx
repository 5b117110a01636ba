import { type ReactNode, useId, useRef } from 'react'

/** A menu of rare actions behind a button with three dots. */
export function MoreMenu({ label, children }: { label: string; children: ReactNode }) {
  const menu = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const id = useId()
  return (
    <div className="more-menu">
      <button
        ref={button}
        type="button"
        className="button"
        aria-label={label}
        title={label}
        popoverTarget={id}
        data-testid="more-menu"
      >
        <span aria-hidden>⋯</span>
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        onToggle={() => {
          if (button.current && menu.current) placeBelow(button.current, menu.current)
        }}
        // Closed before the action starts: a dialog then gives the focus back to the button with the dots.
        onClickCapture={() => menu.current?.hidePopover()}
      >
        {children}
      </div>
    </div>
  )
}

const GAP = 6

/** Puts a popover below its button, right edges in line, and never out of the window. */
export function placeBelow(button: HTMLElement, popover: HTMLElement): void {
  const { bottom, right } = button.getBoundingClientRect()
  popover.style.top = `${bottom + GAP}px`
  popover.style.left = `${Math.max(GAP, right - popover.offsetWidth)}px`
}
