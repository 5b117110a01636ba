import './tabs.css'

import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from 'react'

import { keyTarget } from '@/lib/keyboard'

interface Props<T extends string> {
  label: string
  tabs: readonly (readonly [T, string])[]
  chosen: T
  onChoose: (tab: T) => void
  children: ReactNode
}

/** ARIA's tabs: one stop of the Tab key, arrow keys, Home and End move between them. */
export function Tabs<T extends string>({ label, tabs, chosen, onChoose, children }: Props<T>) {
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  // On a narrow screen the list scrolls: the chosen tab is in the middle of it.
  useEffect(() => {
    const tab = list.current?.querySelector<HTMLElement>('[aria-selected=true]')
    if (list.current && tab) list.current.scrollLeft = tab.offsetLeft + (tab.offsetWidth - list.current.clientWidth) / 2
  }, [chosen])

  const move = (event: KeyboardEvent) => {
    const index = tabs.findIndex(([tab]) => tab === chosen)
    const target = keyTarget(event.key, index, tabs.length)
    const tab = target === undefined ? undefined : tabs[target]
    if (tab === undefined) return
    event.preventDefault()
    onChoose(tab[0])
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[target ?? 0]?.focus()
  }
  return (
    <div className="tabs">
      <div className="tab-list" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map(([tab, text]) => (
          <button
            key={tab}
            id={`${id}-${tab}`}
            type="button"
            role="tab"
            aria-selected={tab === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={tab === chosen ? 0 : -1}
            onClick={() => {
              onChoose(tab)
            }}
          >
            {text}
          </button>
        ))}
      </div>
      <div id={`${id}-panel`} className="tab-panel" role="tabpanel" tabIndex={0} aria-labelledby={`${id}-${chosen}`}>
        {children}
      </div>
    </div>
  )
}
