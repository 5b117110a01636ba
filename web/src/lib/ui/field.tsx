import type { ReactNode } from 'react'

interface Props {
  label: string
  hint?: string
  children: ReactNode
}

/** An input under its name. */
export function Field({ label, hint, children }: Props) {
  return (
    <label className="field">
      <span>{label}</span>
      {children}
      {hint !== undefined && <span className="muted small">{hint}</span>}
    </label>
  )
}
