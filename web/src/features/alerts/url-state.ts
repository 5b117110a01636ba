import { type Search, word } from '@/lib/search-params'

/** What the address holds: `?project=hearts&experiment=exp_…`. */
export interface AlertsUrlState {
  project?: string | undefined
  /** What a new alert is suggested to be about. */
  experiment?: string | undefined
}

export function parseAlertsUrl(search: Search): AlertsUrlState {
  return { project: word(search.project), experiment: word(search.experiment) }
}

/** Whose alerts are shown: of the project of the address, or the first that the user sees. */
export function projectOf({ project }: AlertsUrlState, seen: readonly string[]): string | undefined {
  return project ?? seen[0]
}
