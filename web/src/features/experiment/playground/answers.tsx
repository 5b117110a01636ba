import { useEffect, useRef, useState } from 'react'

import { askModel, type SaidKind } from '@/api/playground'
import { type ApiProblem, toProblem } from '@/api/problem'
import type { PlaygroundEvent, PlaygroundRequest } from '@/api/types'
import { formatSeconds } from '@/lib/format'
import { CopyButton } from '@/lib/ui/copy-button'

type Side = 'tuned' | 'base'

/** The answer of one model so far. */
interface Answer {
  state: 'waiting' | 'loading' | 'answering' | 'done'
  text: string
  tokens: number | undefined
  seconds: number | undefined
  ended: string | undefined
}

interface Answers {
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

/** The current question and its answers. Leaving the page stops the worker, as `stop` does. */
export function useAnswers(id: string) {
  const [answers, setAnswers] = useState<Answers>()
  const [problem, setProblem] = useState<ApiProblem>()
  const [running, setRunning] = useState<AbortController>()
  const current = useRef<AbortController>(undefined)
  useEffect(() => () => current.current?.abort(), [])

  const ask = async (question: PlaygroundRequest, sides: Side[]) => {
    const controller = new AbortController()
    current.current?.abort()
    current.current = controller
    setRunning(controller)
    setProblem(undefined)
    setAnswers(asked(sides))
    try {
      await askModel(
        id,
        question,
        (kind, said) => {
          setAnswers((before) => before && heard(before, kind, said))
        },
        controller.signal,
      )
    } catch (failure) {
      if (!controller.signal.aborted) setProblem(toProblem(failure))
    } finally {
      setRunning((before) => (before === controller ? undefined : before))
    }
  }
  return { answers, problem, running: running !== undefined, ask, stop: () => running?.abort() }
}

interface Props {
  answers: Answers
  /** The name of each side: "Round 20". */
  names: Record<Side, string>
  over: boolean
}

/** The answers side by side, and how each goes on. */
export function AnswerCards({ answers, names, over }: Props) {
  return (
    <div className="answers">
      {(['tuned', 'base'] as const).map((side) => {
        const answer = answers.sides[side]
        if (answer === undefined) return null
        const moving = !over && answer.state !== 'done'
        return (
          <section
            key={side}
            className="answer"
            aria-label={names[side]}
            aria-busy={moving}
            data-testid={`answer-${side}`}
          >
            <header>
              <h3>{names[side]}</h3>
              {answer.text !== '' && !moving && <CopyButton text={answer.text} label={`answer of ${names[side]}`} />}
            </header>
            <p className="answer-text" dir="auto" data-testid={`text-${side}`}>
              {answer.text}
              {moving && answer.state === 'answering' && <span className="caret" aria-hidden="true" />}
            </p>
            <p className="muted small" role="status">
              {progressText(answer, answers.waited, over)}
            </p>
          </section>
        )
      })}
    </div>
  )
}
