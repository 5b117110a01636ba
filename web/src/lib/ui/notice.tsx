import type { ReactNode } from 'react'

interface Props {
  title: string
  testId: string
  children: ReactNode
}

/** Something that a reader should know, and can often do something about; not an error. */
export function Notice({ title, testId, children }: Props) {
  return (
    <section className="notice" role="status" data-testid={testId}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}
