import { forwardRef } from 'react'

import { inputId, type Wrong } from './errors'

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
