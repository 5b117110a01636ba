import { StateIcon } from './state-icon'
import { stateLook } from './state-look'

interface Props {
  /** A state of an experiment, a round or an assignment; icon and tint follow from it. */
  state: string
  /** How many are in it, where the chip is about several. */
  count?: number
  testId?: string
}

export function StateChip({ state, count, testId }: Props) {
  return (
    <span className="state-chip" data-state={state} data-look={stateLook(state)} data-testid={testId}>
      <StateIcon state={state} />
      {count !== undefined && `${count} `}
      {state}
    </span>
  )
}
