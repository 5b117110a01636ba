import { useEffect, useRef, useState } from 'react'

import { askModel } from '@/api/playground'
import { type ApiProblem, toProblem } from '@/api/problem'
import type { PlaygroundRequest } from '@/api/types'

import { type Answers, asked, heard, type Side } from './answers'

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
