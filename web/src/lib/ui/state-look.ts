export type StateLook = 'moving' | 'done' | 'bad' | 'paused' | 'warning' | 'waiting' | 'ended'

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
