import type { Part } from './queries'
import type { Event, Experiment, ExperimentState } from './types'

/** The parts that each event makes stale. The stream has no other events. */
const STALE = {
  'experiment.queued': ['show'],
  'experiment.running': ['show'],
  'experiment.paused': ['show', 'rounds', 'contributions', 'participation'],
  'experiment.resumed': ['show', 'rounds', 'contributions', 'participation'],
  'experiment.extended': ['show'],
  'experiment.completed': ['show', 'rounds', 'metrics', 'artifacts', 'events'],
  'experiment.failed': ['show', 'rounds', 'contributions', 'participation', 'events'],
  'experiment.cancelled': ['show', 'rounds', 'contributions', 'participation', 'events'],
  'participant.joined': ['show', 'participants'],
  'participant.approved': ['show', 'participants'],
  'participant.refused': ['show', 'participants'],
  'participant.revoked': ['show', 'participants', 'rounds', 'contributions', 'participation'],
  'round.opened': ['rounds', 'contributions', 'participation'],
  'round.dealt': ['rounds', 'contributions', 'participation'],
  'round.frozen': ['rounds', 'participation'],
  'round.agreed': ['rounds'],
  'round.released': ['rounds'],
  'round.committed': ['show', 'rounds', 'participation', 'metrics'],
  'round.evaluated': ['show', 'rounds', 'metrics'],
  'round.abandoned': ['rounds', 'contributions', 'participation'],
  'round.rolled_back': ['rounds', 'contributions', 'participation'],
  'contribution.accepted': ['rounds', 'contributions', 'participation'],
  'contribution.rejected': ['rounds', 'contributions', 'participation', 'rejections'],
  'evaluation.failed': ['show', 'rounds'],
  'checkpoint.written': ['artifacts'],
  'checkpoint.rebuilt': ['artifacts'],
} as const satisfies Record<string, readonly Part[]>

const STATE_AFTER: Partial<Record<EventType, ExperimentState>> = {
  'experiment.queued': 'queued',
  'experiment.running': 'running',
  'experiment.paused': 'paused',
  'experiment.resumed': 'running',
  'experiment.completed': 'completed',
  'experiment.failed': 'failed',
  'experiment.cancelled': 'cancelled',
}

export type EventType = keyof typeof STALE
export const EVENT_TYPES = Object.keys(STALE) as EventType[]

export type ExperimentEvent = Event & { type: EventType }

export function parseEvent(data: string): ExperimentEvent {
  return JSON.parse(data) as ExperimentEvent
}

export function staleParts(event: ExperimentEvent): readonly Part[] {
  return STALE[event.type]
}

/** The experiment after the event, at once and before any refetch. An event that is already applied changes nothing. */
export function applyEvent(experiment: Experiment, event: ExperimentEvent): Experiment {
  if (event.seq <= experiment.last_event_seq) return experiment
  return {
    ...experiment,
    last_event_seq: event.seq,
    round: event.type === 'round.committed' ? (event.round ?? experiment.round) : experiment.round,
    state: STATE_AFTER[event.type] ?? experiment.state,
  }
}
