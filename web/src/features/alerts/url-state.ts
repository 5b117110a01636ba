import { type Search, word } from '@/lib/search-params'

/** What the address holds: `?project=hearts&experiment=exp_…`. */
export interface View {
  project?: string | undefined
  /** What a new alert is suggested to be about. */
  experiment?: string | undefined
}

export function parseView(search: Search): View {
  return { project: word(search.project), experiment: word(search.experiment) }
}

/** Whose alerts are shown: of the project of the address, or the first that the user sees. */
export function projectOf({ project }: View, seen: readonly string[]): string | undefined {
  return project ?? seen[0]
}
