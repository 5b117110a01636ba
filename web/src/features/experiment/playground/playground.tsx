import './playground.css'

import { useMutation, useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, type SubmitEvent, useRef, useState } from 'react'

import { meQuery, onlyReads } from '@/api/account'
import { drawExample } from '@/api/playground'
import { toProblem } from '@/api/problem'
import { artifactsQuery } from '@/api/queries'
import type { Experiment, HeldOutExample } from '@/api/types'
import { checkpoints, firstChoice, modelName } from '@/features/experiment/checkpoints/checkpoint'
import type { ChangeExperimentUrl, ExperimentUrlState } from '@/features/experiment/url-state'
import { Field } from '@/lib/ui/field'
import { ProblemNotice } from '@/lib/ui/notice'
import { dismissToast, toastFailure } from '@/lib/ui/toasts'

import { AnswerCards, useAnswers } from './answers'
import { Options, TOKENS } from './options'

interface Props {
  experiment: Experiment
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

/** Sends questions to the model of any checkpoint and to the base model. */
export default function Playground({ experiment: { id }, view, onView }: Props) {
  const { data, error, isPending } = useQuery(artifactsQuery(id))
  const found = checkpoints(data ?? [])
  const chosen = view.model ?? firstChoice(found)
  if (chosen === undefined) {
    if (error) return <ProblemNotice problem={toProblem(error)} />
    return isPending ? null : (
      <p className="muted">There is no checkpoint yet. You can ask the first one once it is written.</p>
    )
  }
  const models = found.map((model) => ({ round: model.round, name: modelName(model, found) }))
  return <Asking id={id} view={view} onView={onView} models={models} chosen={chosen} />
}

interface AskingProps extends Omit<Props, 'experiment'> {
  id: string
  models: { round: number; name: string }[]
  chosen: number
}

function Asking({ id, view, onView, models, chosen }: AskingProps) {
  const name = models.find(({ round }) => round === chosen)?.name ?? `Round ${chosen}`
  const [question, setQuestion] = useState('')
  const [input, setInput] = useState('')
  const [example, setExample] = useState<HeldOutExample>()
  const [names, setNames] = useState({ tuned: name, base: 'Base model' })
  const form = useRef<HTMLFormElement>(null)
  const { answers, problem, running, ask, stop } = useAnswers(id)

  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    if (running || question.trim() === '') return // Ctrl + Enter ignores a disabled button
    setNames({ tuned: name, base: 'Base model' })
    const { temperature = 0, tokens = TOKENS, seed = 0 } = view
    const body = { question, input, round: chosen, compare: true, temperature, max_new_tokens: tokens, seed }
    void ask(body, chosen === 0 ? ['base'] : ['tuned', 'base'])
  }
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.current?.requestSubmit()
  }
  return (
    <section aria-labelledby="playground" className="playground">
      <header className="section-header">
        <h2 id="playground">Ask the model</h2>
        <span className="muted small">Questions and answers are not stored.</span>
      </header>
      <form ref={form} onSubmit={submit} onKeyDown={onKey}>
        <Options view={view} onView={onView} models={models} chosen={chosen} />
        <Field label="Question">
          <textarea
            value={question}
            rows={3}
            required
            maxLength={16_000}
            dir="auto"
            onChange={(event) => {
              setQuestion(event.target.value)
            }}
          />
        </Field>
        <Field label="Input" hint="Optional: a text that the question is about.">
          <textarea
            value={input}
            rows={2}
            maxLength={16_000}
            dir="auto"
            onChange={(event) => {
              setInput(event.target.value)
            }}
          />
        </Field>
        <div className="ask-actions">
          {running ? (
            <button type="button" className="button primary" onClick={stop}>
              Stop
            </button>
          ) : (
            <button type="submit" className="button primary" disabled={question.trim() === ''}>
              Ask
            </button>
          )}
          <ExampleButton
            id={id}
            onDrawn={(drawn) => {
              setExample(drawn)
              setQuestion(drawn.question)
              setInput(drawn.input)
            }}
          />
          <span className="muted small">Press Ctrl + Enter to ask.</span>
        </div>
      </form>
      {problem && <ProblemNotice problem={problem} />}
      {answers && <AnswerCards answers={answers} names={names} over={!running} />}
      {isAsked(example, question, input) && <Reference example={example} />}
    </section>
  )
}

function isAsked(example: HeldOutExample | undefined, question: string, input: string): example is HeldOutExample {
  return example?.question === question && example.input === input
}

/** The reference answers of the data set, shown while the question is the drawn one. */
function Reference({ example }: { example: HeldOutExample }) {
  return (
    <section className="answer reference" aria-label="Reference" data-testid="reference">
      <header>
        <h3>Reference</h3>
        <span className="muted small">held-out example {example.number}</span>
      </header>
      {example.references.map((text) => (
        <p key={text} className="answer-text" dir="auto">
          {text}
        </p>
      ))}
    </section>
  )
}

const ACTION = 'Drawing an example'
const SEEDS = 2 ** 31

/** Draws a random held-out example, for users who may read the service's data. */
function ExampleButton({ id, onDrawn }: { id: string; onDrawn: (example: HeldOutExample) => void }) {
  const { data: me } = useQuery(meQuery)
  const draw = useMutation({
    mutationFn: () => drawExample(id, Math.floor(Math.random() * SEEDS)),
    onError: (failure) => {
      toastFailure(ACTION, toProblem(failure))
    },
    onSuccess: (example) => {
      dismissToast(ACTION)
      onDrawn(example)
    },
  })
  if (onlyReads(me) !== false) return null
  return (
    <button
      type="button"
      className="button"
      disabled={draw.isPending}
      onClick={() => {
        draw.mutate()
      }}
    >
      {draw.isPending ? 'Drawing…' : 'Draw a held-out example'}
    </button>
  )
}
