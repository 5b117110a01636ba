import type { Curve } from '@/lib/charts/zoom'

import type { components } from './schema'

type Schemas = components['schemas']

export type Artifact = Schemas['Artifact']
export type PlaygroundRequest = Schemas['PlaygroundRequest']
export type BrowserSession = Schemas['BrowserSession']
export type Callback = Schemas['Callback']
export type CatalogEntry = Schemas['CatalogEntry']
export type CatalogKind = Schemas['CatalogKind']
export type Contribution = Schemas['Contribution']
/** The experiment as users see it. Participants see less, and have no dashboard. */
export type Experiment = Schemas['Experiment']
export type ExperimentChange = Partial<Schemas['ExperimentChange']>
export type ExperimentGroup = Schemas['ExperimentGroup']
export type ListedExperiment = Schemas['ListedExperiment']
export type ExperimentState = Schemas['ExperimentState']
export type HeldOutExample = Schemas['HeldOutExample']
export type CurrentUser = Schemas['CurrentUser']
export type Participant = Schemas['Participant']
export type ParticipationMatrix = Schemas['ParticipationMatrix']
export type ParticipantRound = Schemas['ParticipantRound']
export type Rejection = Schemas['Rejection']
export type Role = Schemas['Role']
export type Round = Schemas['Round']
export type RoundUpdate = Schemas['RoundUpdate']
export type UpdateAgreement = Schemas['UpdateAgreement']
export type PlaygroundEvent = Schemas['PlaygroundEvent']
export type Scope = Schemas['Scope']
export type Token = Schemas['Token']
export type Project = Schemas['Project']
export type Member = Schemas['Member']
export type Event = Schemas['Event']
export type Draft = Schemas['Draft']
export type Estimate = Schemas['Estimate']
export type DraftValidation = Schemas['DraftValidation']
export type System = Schemas['System']
export type WorkerStatus = Schemas['WorkerStatus']
export type Alert = Schemas['Alert']
export type AlertEvent = Schemas['AlertEvent']
export type AlertKind = Schemas['AlertKind']
export type CreatedAlert = Schemas['CreatedAlert']
export type Delivery = Schemas['Delivery']
export type AuditEntry = Schemas['AuditEntry']
export type User = Schemas['User']
export type EnrolmentInfo = Schemas['EnrolmentInfo']
export type Enrolment = Schemas['Enrolment']
export type Queue = Schemas['Queue']

export type MetricSeries = Curve

export interface MetricSeriesList extends Omit<Schemas['MetricSeriesList'], 'series'> {
  series: MetricSeries[]
}

export const EXPERIMENT_STATES = [
  'queued',
  'running',
  'paused',
  'completed',
  'failed',
  'cancelled',
] as const satisfies readonly ExperimentState[]

const FINISHED: readonly ExperimentState[] = ['completed', 'failed', 'cancelled']

export function isFinished(state: ExperimentState): boolean {
  return FINISHED.includes(state)
}

/** The state as the dashboard shows it: `stalled` if nothing can move the experiment on. */
export function shownState({ state, stalled }: Experiment | ListedExperiment): string {
  return stalled ? 'stalled' : state
}
