interface Props {
  /** A state of an experiment, a round or an assignment; the colours stand in state-chip.css. */
  state: string
  testId?: string
}

export function StateChip({ state, testId }: Props) {
  return (
    <span className="state-chip" data-state={state} data-testid={testId}>
      {state}
    </span>
  )
}
