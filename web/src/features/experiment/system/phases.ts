import type { Round } from '@/api/types'
import { secondsBetween } from '@/lib/format'
import { median } from '@/lib/median'

export interface Phase {
  term: string
  /** Seconds. */
  usual: number
  longest: { seconds: number; round: number }
}

type Moment = 'opened_at' | 'frozen_at' | 'committed_at' | 'evaluated_at'

const PHASES: [string, Moment, Moment][] = [
  ['Open for contributions', 'opened_at', 'frozen_at'],
  ['Aggregation', 'frozen_at', 'committed_at'],
  ['Evaluation', 'committed_at', 'evaluated_at'],
]

/** The duration of each phase of a round. Only the last of several attempts at a round counts. */
export function phasesOf(rounds: readonly Round[]): Phase[] {
  return PHASES.flatMap(([term, begin, end]) => {
    const lengths = rounds.flatMap((round) => {
      const [began, ended] = [round[begin], round[end]]
      return began === null || ended === null ? [] : [{ seconds: secondsBetween(began, ended), round: round.number }]
    })
    const usual = median(lengths.map(({ seconds }) => seconds))
    if (usual === undefined) return []
    return [{ term, usual, longest: lengths.reduce((most, next) => (next.seconds > most.seconds ? next : most)) }]
  })
}
