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

/** Drawn into 16 × 16. */
const PATHS: Record<StateLook, string> = {
  moving: 'M8 5.2a2.8 2.8 0 1 1 0 5.6a2.8 2.8 0 0 1 0-5.6z',
  done: 'M3.5 8.6l3 3l6-6.6',
  bad: 'M4.5 4.5l7 7M11.5 4.5l-7 7',
  paused: 'M6 4.5v7M10 4.5v7',
  warning: 'M8 3v6M8 12.2v.3',
  waiting: 'M8 4.6v3.6l2.4 1.6M8 2.2a5.8 5.8 0 1 1 0 11.6a5.8 5.8 0 0 1 0-11.6z',
  ended: 'M4 8h8',
}

/** An icon that distinguishes states without colour. */
export function StateIcon({ state }: { state: string }) {
  const look = stateLook(state)
  return (
    <svg className="state-icon" data-look={look} viewBox="0 0 16 16" width="14" height="14" aria-hidden>
      {look === 'moving' && <circle className="state-pulse" cx="8" cy="8" r="2.8" />}
      <path d={PATHS[look]} />
    </svg>
  )
}

type StateLook = 'moving' | 'done' | 'bad' | 'paused' | 'warning' | 'waiting' | 'ended'

const LOOKS: Record<StateLook, readonly string[]> = {
  moving: ['running', 'active', 'open', 'opened', 'leased', 'frozen', 'resumed', 'online'],
  done: ['completed', 'committed', 'accepted', 'approved', 'evaluated', 'written', 'rebuilt', 'delivered', 'enabled'],
  bad: ['failed', 'abandoned', 'rejected', 'refused', 'revoked', 'undone'],
  paused: ['paused'],
  warning: ['stalled', 'expired', 'silent'],
  waiting: ['queued', 'pending', 'idle', 'waiting'],
  ended: [],
}

/** How a state of an experiment, a round, a participant or an assignment, or an event that led to it, is marked. */
export function stateLook(state: string): StateLook {
  const found = Object.entries(LOOKS).find(([, states]) => states.includes(state))
  return (found?.[0] ?? 'ended') as StateLook
}
