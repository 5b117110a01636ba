import './edit-in-place.css'

import { type ReactNode, type SubmitEvent, useRef, useState } from 'react'

interface Props {
  /** Names the edited text in the accessible name: "name of demo". */
  label: string
  value: string
  maxLength: number
  children: ReactNode
  /** Called when the editing begins, to read what it starts from. */
  onBegin: () => void
  onSave: (text: string) => Promise<unknown>
}

/** A text with an edit button. In the field, Enter saves and Escape cancels. */
export function EditInPlace({ label, value, maxLength, children, onBegin, onSave }: Props) {
  const [editing, setEditing] = useState(false)
  const pencil = useRef<HTMLButtonElement>(null)
  const end = () => {
    setEditing(false)
    requestAnimationFrame(() => pencil.current?.focus())
  }
  const save = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const text = new FormData(event.currentTarget).get('text')
    end()
    if (typeof text === 'string' && text.trim() !== '' && text !== value) void onSave(text.trim())
  }
  if (editing) {
    return (
      <form className="edit-in-place" onSubmit={save}>
        <input
          name="text"
          aria-label={label}
          defaultValue={value}
          maxLength={maxLength}
          autoFocus
          required
          onFocus={(event) => {
            event.currentTarget.select()
          }}
          onKeyDown={(event) => {
            if (event.key === 'Escape') end()
          }}
        />
        <button type="submit" className="copy-button">
          Save
        </button>
      </form>
    )
  }
  return (
    <span className="edit-in-place">
      {children}
      <button
        ref={pencil}
        type="button"
        className="copy-button pencil"
        aria-label={`Edit ${label}`}
        title="Rename"
        onClick={() => {
          onBegin()
          setEditing(true)
        }}
      >
        <svg viewBox="0 0 16 16" width="13" height="13" aria-hidden>
          <path d="M3 13l.6-2.8 7.2-7.2 2.2 2.2-7.2 7.2z" />
        </svg>
      </button>
    </span>
  )
}
