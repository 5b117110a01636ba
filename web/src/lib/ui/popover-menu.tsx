import { type ReactNode, useId, useRef } from 'react'

import { placeBelow } from './more-menu'

interface Props {
  /** The words on the button. */
  title: string
  label: string
  /** A control that closes the group has this id as its `popoverTarget`. */
  children: ReactNode | ((id: string) => ReactNode)
}

/** A button that opens a group of controls below it. */
export function PopoverMenu({ title, label, children }: Props) {
  const menu = useRef<HTMLDivElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const id = useId()
  return (
    <div className="popover-menu">
      <button ref={button} type="button" className="button" popoverTarget={id}>
        {title} <span aria-hidden>▾</span>
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        role="group"
        aria-label={label}
        onToggle={() => {
          if (button.current && menu.current) placeBelow(button.current, menu.current)
        }}
      >
        {typeof children === 'function' ? children(id) : children}
      </div>
    </div>
  )
}
