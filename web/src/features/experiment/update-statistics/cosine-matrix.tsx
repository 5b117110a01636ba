import type { UpdateAgreement } from '@/api/types'
import { download } from '@/lib/download'

import { agreementOf, cosineText, isMeasurable } from './noise-assessment'

/** With more participants, cells show a colour alone; the tooltip and screen readers give the number. */
const WRITTEN = 8

interface Props {
  agreement: UpdateAgreement
  file: string
}

/** The cosine between the updates of every two participants. */
export function CosineMatrix({ agreement, file }: Props) {
  const { participants, display_names: shown } = agreement
  const { cosineOf } = cosinePairs(agreement)
  const written = participants.length <= WRITTEN
  const name = (participant: string) => shown[participant] ?? participant
  return (
    <section aria-labelledby="cosines" data-testid="cosines">
      <header className="section-header">
        <h2 id="cosines">Cosine between participants</h2>
        <button
          type="button"
          className="copy-button"
          aria-label="Cosines as CSV"
          onClick={() => {
            download(`${file}.csv`, new Blob([cosinePairs(agreement).csv()], { type: 'text/csv' }))
          }}
        >
          CSV
        </button>
      </header>
      <p>{agreementOf(agreement) ?? 'No two participants changed the model.'}</p>
      <div className="table-scroll tall" tabIndex={0} role="group" aria-label="Cosine between participants">
        <table className={written ? 'cosine-table' : 'cosine-table dense'}>
          <thead>
            <tr>
              <th scope="col">Participant</th>
              {participants.map((participant, column) => (
                <th key={participant} scope="col" className="number" title={name(participant)}>
                  {written ? name(participant) : column + 1}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {participants.map((participant, row) => (
              <tr key={participant}>
                <th scope="row">{written ? name(participant) : `${row + 1} ${name(participant)}`}</th>
                {participants.map((other, column) => {
                  if (row === column)
                    return (
                      <td key={other} className="number muted">
                        <span className={written ? undefined : 'visually-hidden'}>1</span>
                      </td>
                    )
                  const { cosine, error } = cosineOf(row, column)
                  const text = cosineText(cosine, error)
                  const unsure = cosine !== null && error !== null && Math.abs(cosine) < 2 * error
                  return (
                    <td
                      key={other}
                      className={unsure ? 'number unsure' : 'number'}
                      title={`${name(participant)} and ${name(other)}: ${text}`}
                      style={{ background: tint(isMeasurable(error) ? cosine : null) }}
                    >
                      <span className={written ? undefined : 'visually-hidden'}>{text}</span>
                    </td>
                  )
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

/** One colour for positive cosines and one for negative, light enough for text to stay legible. */
function tint(cosine: number | null): string {
  const depth = Math.round(35 * Math.min(1, Math.abs(cosine ?? 0)))
  return `color-mix(in srgb, var(${(cosine ?? 0) < 0 ? '--second' : '--accent'}) ${depth}%, transparent)`
}

interface Pair {
  cosine: number | null
  error: number | null
}

/** The cosines of pairs, which the server lists row by row above the diagonal. */
export function cosinePairs({ participants, cosines, errors }: UpdateAgreement) {
  const count = participants.length
  const cosineOf = (one: number, other: number): Pair => {
    const [row, column] = one < other ? [one, other] : [other, one]
    const place = (row * (2 * count - row - 1)) / 2 + column - row - 1
    return { cosine: cosines[place] ?? null, error: errors[place] ?? null }
  }
  const csv = () => {
    const rows = participants.flatMap((first, row) =>
      participants.slice(row + 1).map((second, after) => {
        const { cosine, error } = cosineOf(row, row + 1 + after)
        return [first, second, String(cosine ?? ''), String(error ?? '')]
      }),
    )
    return [['participant', 'other', 'cosine', 'standard_error'], ...rows]
      .map((cells) => `${cells.join(',')}\r\n`)
      .join('')
  }
  return { cosineOf, csv }
}
