import type { PartsOfRounds } from '@/api/participation-matrix'
import type { ParticipationMatrix } from '@/api/types'

const SERVER_STATES = ['pending', 'leased', 'accepted', 'rejected', 'expired']
type Part = [name: string, state: string, size?: number, seconds?: number, loss?: number]

/** A round as the server sends it. */
export function round(
  number: number,
  parts: Part[],
  refused: Record<string, string[]> = {},
  state: ParticipationMatrix['rounds'][number]['state'] = 'committed',
): PartsOfRounds['rounds'][number] {
  const participants = parts.map(([name]) => name).sort()
  const inOrder = [...parts].sort(([a], [b]) => participants.indexOf(a) - participants.indexOf(b))
  return {
    participants,
    states: SERVER_STATES,
    parts: {
      round: number,
      attempt: 1,
      state,
      participants: inOrder.map(([name]) => participants.indexOf(name)),
      states: inOrder.map(([, of]) => SERVER_STATES.indexOf(of)),
      sizes: inOrder.map(([, , size]) => size ?? null),
      seconds: inOrder.map(([, , , seconds]) => seconds ?? null),
      losses: inOrder.map(([, , , , loss]) => loss ?? null),
      refused: Object.fromEntries(
        Object.entries(refused).map(([code, names]) => [code, names.map((name) => participants.indexOf(name))]),
      ),
    },
  }
}

export const ARABIC = 'مستشفى الأمل'

/** Two rounds of four participants, one of them real, with names in unsorted order. */
export const TWO_ROUNDS: PartsOfRounds = {
  rounds: [
    round(
      6,
      [
        ['client-10', 'accepted', 8192, 1.5, 2.5],
        ['client-2', 'rejected'],
      ],
      { 'training.non_finite': ['client-2'] },
    ),
    round(
      7,
      [
        ['client-10', 'accepted', 8000, 2.5, 2],
        ['client-2', 'expired'],
        ['site-5d', 'leased'],
        ['client-3', 'pending'],
      ],
      { 'contribution.malformed': ['client-10'] },
      'open',
    ),
  ],
  displayNames: { 'site-5d': ARABIC },
}
