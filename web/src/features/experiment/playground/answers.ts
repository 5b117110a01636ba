import type { SaidKind } from '@/api/playground'
import type { PlaygroundEvent } from '@/api/types'
import { formatSeconds } from '@/lib/format'

export type Side = 'tuned' | 'base'

/** The answer of one model so far. */
export interface Answer {
  state: 'waiting' | 'loading' | 'answering' | 'done'
  text: string
  tokens: number | undefined
  seconds: number | undefined
  ended: string | undefined
}

export interface Answers {
  /** Seconds that the question has waited for a worker. */
  waited: number | undefined
  sides: Partial<Record<Side, Answer>>
}

const SILENT: Answer = { state: 'waiting', text: '', tokens: undefined, seconds: undefined, ended: undefined }

/** Answers before the first message. */
export function asked(sides: Side[]): Answers {
  return { waited: undefined, sides: Object.fromEntries(sides.map((side) => [side, SILENT])) }
}

/** The answers after one more message. */
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

const ENDS: Record<string, string> = {
  length: 'cut off at the maximum length',
  context: 'cut off: the context is full',
}

/** The progress of an answer in words. With `over` no more text will come. */
export function progressText(answer: Answer, waited: number | undefined, over: boolean): string {
  if (answer.state === 'done') {
    const { tokens = 0, seconds = 0, ended = '' } = answer
    const length = `${tokens} ${tokens === 1 ? 'token' : 'tokens'} in ${formatSeconds(seconds)}`
    return [answer.text === '' && 'an empty answer', length, ENDS[ended]].filter(Boolean).join(' · ')
  }
  if (over) return answer.text === '' ? 'no answer' : 'interrupted'
  if (answer.state === 'waiting')
    return waited === undefined ? 'waiting' : `waiting for a worker, ${waited.toFixed(0)} s`
  return answer.state === 'loading' ? 'loading the model' : 'answering'
}
