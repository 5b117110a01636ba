import type { ReactNode } from 'react'

/** One of a list of facts: its name over its value. */
export function DefinitionItem({ term, children }: { term: string; children: ReactNode }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  )
}
