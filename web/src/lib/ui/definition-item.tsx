import type { ReactNode } from 'react'

/** One item of a definition list: a term and its value. */
export function DefinitionItem({ term, children }: { term: string; children: ReactNode }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  )
}
