import type { ReactNode } from 'react'

import { NextStep } from './next-step'

interface FieldError {
  field: string
  message: string
}

/** The parts of a problem document (RFC 9457) that a reader can use. */
export interface Problem {
  code: string
  title: string
  detail: string
  requestId?: string | undefined
  errors: FieldError[]
  errorsOmitted?: number | undefined
}

export function ProblemNotice({ problem, children }: { problem: Problem; children?: ReactNode }) {
  return (
    <section className="problem-notice" role="alert">
      <h2>{problem.title}</h2>
      {problem.detail && <p>{problem.detail}</p>}
      {problem.errors.length > 0 && (
        <ul>
          {problem.errors.map((error) => (
            <li key={`${error.field} ${error.message}`}>
              <code>{error.field}</code> {error.message}
            </li>
          ))}
          {!!problem.errorsOmitted && <li>and {problem.errorsOmitted} more</li>}
        </ul>
      )}
      <NextStep problem={problem} />
      {children}
    </section>
  )
}
