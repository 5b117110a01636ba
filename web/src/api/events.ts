import type { Part } from './queries'
import { type Event, type Experiment, type ExperimentState, isFinished } from './types'

/** What each event makes stale; the stream names no other events. */
const STALE = {
  'experiment.queued': ['show'],
  'experiment.running': ['show'],
  'experiment.completed': ['show', 'rounds', 'metrics', 'artifacts'],
  'experiment.failed': ['show', 'rounds', 'contributions'],
  'experiment.cancelled': ['show', 'rounds', 'contributions'],
  'participant.joined': ['show'],
  'round.opened': ['rounds', 'contributions'],
  'round.frozen': ['rounds'],
  'round.committed': ['show', 'rounds', 'metrics'],
  'round.evaluated': ['show', 'rounds', 'metrics'],
  'round.abandoned': ['rounds', 'contributions'],
  'contribution.accepted': ['rounds', 'contributions'],
  'contribution.rejected': ['rounds', 'contributions'],
  'checkpoint.written': ['artifacts'],
} as const satisfies Record<string, readonly Part[]>

export type EventType = keyof typeof STALE
export const EVENT_TYPES = Object.keys(STALE) as EventType[]

export type ExperimentEvent = Event & { type: EventType }

export function parseEvent(data: string): ExperimentEvent {
  return JSON.parse(data) as ExperimentEvent
}

export function staleParts(event: ExperimentEvent): readonly Part[] {
  return STALE[event.type]
}

/**
 * The experiment as it stands after the event, at once and before any refetch. A stream starts with the past, so a
 * patch only ever moves forward: an old event leaves what was fetched later as it is.
 */
export function applyEvent(experiment: Experiment, event: ExperimentEvent): Experiment {
  const state = stateOf(event)
  return {
    ...experiment,
    round: event.type === 'round.committed' ? Math.max(experiment.round, event.round ?? 0) : experiment.round,
    state: state !== undefined && isLater(state, experiment.state) ? state : experiment.state,
  }
}

function stateOf({ type }: ExperimentEvent): ExperimentState | undefined {
  const [subject, state] = type.split('.')
  return subject === 'experiment' ? (state as ExperimentState) : undefined
}

function isLater(state: ExperimentState, than: ExperimentState): boolean {
  return !isFinished(than) && (isFinished(state) || than === 'queued')
}
