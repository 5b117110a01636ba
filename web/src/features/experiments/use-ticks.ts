import { useState } from 'react'

/** Ids in the order in which they were ticked; they stay when another filter hides their rows. */
export function useTicks() {
  const [ids, setIds] = useState<readonly string[]>([])
  return {
    ids,
    toggle: (id: string) => {
      setIds((before) => (before.includes(id) ? before.filter((other) => other !== id) : [...before, id]))
    },
    clear: () => {
      setIds([])
    },
  }
}
