import { oneOf, type Search, word } from '@/lib/search-params'

export const SHAPES = ['llama-1b', 'llama-3b', 'llama2-7b', 'llama2-13b', 'llama3-8b', 'qwen2.5-7b'] as const
export type Shape = (typeof SHAPES)[number]
export type Snippet = 'toml' | 'cli' | 'python'

/** The state in the address: `?from=exp_…&open=advanced,server&shape=llama2-7b&as=cli`. Defaults are left out. */
export interface SubmitUrlState {
  /** Id of the experiment that is cloned. */
  from?: string | undefined
  /** Sections that are open. */
  open?: string | undefined
  /** Plan for a model of this shape. */
  shape?: Shape | undefined
  as?: Exclude<Snippet, 'toml'> | undefined
}

/** A clone shows its algorithm's options, since people usually change one of them. */
function usualOpen({ from }: SubmitUrlState): string {
  return from === undefined ? '' : `${ADVANCED},algorithm`
}

/** The part of the form below its first six fields. */
export const ADVANCED = 'advanced'

export function parseSubmitUrl(search: Search): SubmitUrlState {
  return {
    from: word(search.from),
    open: typeof search.open === 'string' ? search.open : undefined,
    shape: oneOf(SHAPES, search.shape),
    as: oneOf(['cli', 'python'], search.as),
  }
}

export function isOpen(view: SubmitUrlState, section: string): boolean {
  return (view.open ?? usualOpen(view)).split(',').includes(section)
}

/** Opens or closes a section. The address holds `none` if all are closed, because empty values are dropped. */
export function toggled(view: SubmitUrlState, section: string, open: boolean): SubmitUrlState {
  const others = (view.open ?? usualOpen(view))
    .split(',')
    .filter((name) => name !== section && !['', 'none'].includes(name))
  const next = (open ? [...others, section] : others).join(',')
  return { ...view, open: next === usualOpen(view) ? undefined : next || 'none' }
}
