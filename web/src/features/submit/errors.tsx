import { forwardRef } from 'react'

import type { Path } from '@/lib/tree'

interface Wrong {
  field: string
  message: string
}

export const MISSING = 'is required'

/** Errors by the input that they are about, or else by the nearest table around it; '' collects the rest. */
export function placed(errors: readonly Wrong[], places: ReadonlySet<string>): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { field, message } of errors) {
    const place = nearest(field.split('.'), places)
    const told = place === field ? message : `${field}: ${message}`
    found.set(place, [...(found.get(place) ?? []), told])
  }
  return found
}

function nearest(path: Path, places: ReadonlySet<string>): string {
  for (let length = path.length; length > 0; length--) {
    const place = path.slice(0, length).join('.')
    if (places.has(place)) return place
  }
  return ''
}

/** Missing values are not reported while the form is being filled in. */
export function toldNow(errors: readonly Wrong[], asked: boolean): Wrong[] {
  return errors.filter(({ message }) => asked || message !== MISSING)
}

/** Replaces the error for a missing table with errors for its required values. */
export function spelledOut(errors: readonly Wrong[], required: readonly string[]): Wrong[] {
  return errors.flatMap((error) => {
    const below = required.filter((path) => path.startsWith(`${error.field}.`))
    if (error.message !== MISSING || below.length === 0) return [error]
    return below.map((field) => ({ field, message: MISSING }))
  })
}

export function inputId(path: string): string {
  return `field-${path}`
}

interface Props {
  errors: readonly Wrong[]
  omitted: number
  places: ReadonlySet<string>
}

/** All that is wrong, each a way to its input. */
export const ErrorSummary = forwardRef<HTMLElement, Props>(function ErrorSummary({ errors, omitted, places }, ref) {
  const count = errors.length + omitted
  return (
    <section ref={ref} tabIndex={-1} className="problem-notice" aria-labelledby="wrong" data-testid="error-summary">
      <h2 id="wrong">{count === 1 ? '1 value needs your attention' : `${count} values need your attention`}</h2>
      <ul>
        {errors.map(({ field, message }) => (
          <li key={`${field} ${message}`}>
            {places.has(field) ? (
              <a
                href={`#${inputId(field)}`}
                onClick={(event) => {
                  event.preventDefault()
                  document.getElementById(inputId(field))?.focus()
                }}
              >
                {field}
              </a>
            ) : (
              <code>{field}</code>
            )}{' '}
            {message}
          </li>
        ))}
        {omitted > 0 && <li>and {omitted} more</li>}
      </ul>
    </section>
  )
})
