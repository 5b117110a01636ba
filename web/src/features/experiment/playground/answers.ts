import type { SaidKind } from '@/api/playground'
import type { PlaygroundEvent } from '@/api/types'
import { formatSeconds } from '@/lib/format'

export type Side = 'tuned' | 'base'

/** What one model has answered so far. */
export interface Answer {
  state: 'waiting' | 'loading' | 'answering' | 'done'
  text: string
  tokens: number | undefined
  seconds: number | undefined
  ended: string | undefined
}

export interface Answers {
  /** Seconds for which no worker has taken the question. */
  waited: number | undefined
  sides: Partial<Record<Side, Answer>>
}

const SILENT: Answer = { state: 'waiting', text: '', tokens: undefined, seconds: undefined, ended: undefined }

/** Nothing is said yet by any of these. */
export function asked(sides: Side[]): Answers {
  return { waited: undefined, sides: Object.fromEntries(sides.map((side) => [side, SILENT])) }
}

/** The answers after something more was said. */
export function heard(before: Answers, kind: SaidKind, said: PlaygroundEvent): Answers {
  if (kind === 'waiting') return { ...before, waited: said.seconds ?? undefined }
  const { side } = said
  if (side == null) return before
  const answer = before.sides[side] ?? SILENT
  return { waited: undefined, sides: { ...before.sides, [side]: { ...answer, ...changed(answer, kind, said) } } }
}

function changed(answer: Answer, kind: SaidKind, said: PlaygroundEvent): Partial<Answer> {
  switch (kind) {
    case 'loading':
      return { state: 'loading' }
    case 'text':
      return { state: 'answering', text: answer.text + (said.text ?? '') }
    case 'done':
      return {
        state: 'done',
        tokens: said.tokens ?? undefined,
        seconds: said.seconds ?? undefined,
        ended: said.ended ?? undefined,
      }
    default:
      return {}
  }
}

const ENDS: Record<string, string> = { length: 'cut at the longest answer', context: 'cut: the context is full' }

/** In words where an answer stands; `over`: no more will come of it. */
export function standing(answer: Answer, waited: number | undefined, over: boolean): string {
  if (answer.state === 'done') {
    const { tokens = 0, seconds = 0, ended = '' } = answer
    const length = `${tokens} ${tokens === 1 ? 'token' : 'tokens'} in ${formatSeconds(seconds)}`
    return [answer.text === '' && 'an empty answer', length, ENDS[ended]].filter(Boolean).join(' · ')
  }
  if (over) return answer.text === '' ? 'no answer' : 'broken off'
  if (answer.state === 'waiting')
    return waited === undefined ? 'waiting' : `waiting for a worker, ${waited.toFixed(0)} s`
  return answer.state === 'loading' ? 'loading the model' : 'answering'
}
