import { CopyButton } from '@/lib/ui/copy-button'

import { type Answers, progressText, type Side } from './answers'

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
