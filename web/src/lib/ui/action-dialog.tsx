import { type ReactNode, type SubmitEvent, useId, useRef, useState } from 'react'
import { createPortal } from 'react-dom'

import { type Problem, ProblemNotice } from './notice'

interface Props {
  label: string
  /** The label of the dialog's button that takes the action; the same as `label` if not given. */
  confirm?: string
  title: string
  children: ReactNode
  /** The label of the button that closes the dialog without the action. */
  dismiss: string
  danger?: boolean
  /** Makes the button that opens the dialog the primary one. */
  primary?: boolean
  pending: boolean
  problem: Problem | undefined
  onOpen?: () => void
  /** Receives true when the dialog opens, and false when it closes. */
  onDialog?: (open: boolean) => void
  /** Takes the action; the dialog closes and forgets its inputs when it resolves to true. */
  onSubmit: (form: FormData) => Promise<boolean>
}

/** A button with a dialog that explains the action, takes its inputs and confirms it. */
export function ActionDialog({
  label,
  confirm = label,
  title,
  children,
  dismiss,
  danger = false,
  primary = false,
  pending,
  problem,
  onOpen,
  onDialog,
  onSubmit,
}: Props) {
  const dialog = useRef<HTMLDialogElement>(null)
  const heading = useId()
  const [attempted, setAttempted] = useState(false)
  const submit = async (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    setAttempted(true)
    if (!(await onSubmit(new FormData(form)))) return
    dialog.current?.close()
    form.reset()
  }

  return (
    <>
      <button
        type="button"
        className={primary ? 'button primary' : 'button'}
        onClick={() => {
          setAttempted(false)
          onOpen?.()
          onDialog?.(true)
          dialog.current?.showModal()
        }}
      >
        {label}
      </button>
      {/* Outside of a menu that the button may be in: a menu that closes would take the dialog with it. */}
      {createPortal(
        <dialog ref={dialog} aria-labelledby={heading} onClose={() => onDialog?.(false)}>
          <form onSubmit={(event) => void submit(event)}>
            <h2 id={heading}>{title}</h2>
            {children}
            {problem && attempted && <ProblemNotice problem={problem} />}
            <div className="dialog-actions">
              <button type="button" className="button" autoFocus={danger} onClick={() => dialog.current?.close()}>
                {dismiss}
              </button>
              <button type="submit" className={danger ? 'button danger' : 'button primary'} disabled={pending}>
                {confirm}
              </button>
            </div>
          </form>
        </dialog>,
        document.body,
      )}
    </>
  )
}
