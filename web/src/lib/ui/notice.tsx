import type { ReactNode } from 'react'

interface Props {
  title: string
  testId: string
  children: ReactNode
}

/** A message that is not an error, often with a next step. */
export function Notice({ title, testId, children }: Props) {
  return (
    <section className="notice" role="status" data-testid={testId}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}
