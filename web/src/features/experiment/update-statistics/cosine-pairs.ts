import type { UpdateAgreement } from '@/api/types'

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
