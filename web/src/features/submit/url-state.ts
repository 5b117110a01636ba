import { oneOf, type Search, word } from '@/lib/search-params'

export const SHAPES = ['llama-1b', 'llama-3b', 'llama2-7b', 'llama2-13b', 'llama3-8b', 'qwen2.5-7b'] as const
export type Shape = (typeof SHAPES)[number]
export type Snippet = 'toml' | 'cli' | 'python'

/** The state in the address: `?from=exp_…&open=server,round&shape=llama2-7b&as=cli`. Defaults are left out. */
export interface SubmitUrlState {
  /** Id of the experiment that is cloned. */
  from?: string | undefined
  /** Sections that are open. */
  open?: string | undefined
  /** Plan for a model of this shape. */
  shape?: Shape | undefined
  as?: Exclude<Snippet, 'toml'> | undefined
}

const OPEN = 'model,dataset,participants,algorithm'

export function parseSubmitUrl(search: Search): SubmitUrlState {
  return {
    from: word(search.from),
    open: typeof search.open === 'string' ? search.open : undefined,
    shape: oneOf(SHAPES, search.shape),
    as: oneOf(['cli', 'python'], search.as),
  }
}

export function isOpen({ open = OPEN }: SubmitUrlState, section: string): boolean {
  return open.split(',').includes(section)
}

/** Opens or closes a section. The address holds `none` if all are closed, because empty values are dropped. */
export function toggled(view: SubmitUrlState, section: string, open: boolean): SubmitUrlState {
  const others = (view.open ?? OPEN).split(',').filter((name) => name !== section && name !== 'none')
  const next = (open ? [...others, section] : others).join(',')
  return { ...view, open: next === OPEN ? undefined : next || 'none' }
}
