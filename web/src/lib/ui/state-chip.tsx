import { StateIcon } from './state-icon'
import { stateLook } from './state-look'

interface Props {
  /** A state of an experiment, a round or an assignment; icon and tint follow from it. */
  state: string
  testId?: string
}

export function StateChip({ state, testId }: Props) {
  return (
    <span className="state-chip" data-state={state} data-look={stateLook(state)} data-testid={testId}>
      <StateIcon state={state} />
      {state}
    </span>
  )
}
