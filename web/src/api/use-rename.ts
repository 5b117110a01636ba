import { useRef } from 'react'

import { readForEdit, type ReadExperiment } from './experiment-edit'
import { useEdit } from './use-edit'

/** What a field needs that renames the experiment; it is read when the editing begins. */
export function useRename({ id, name }: { id: string; name: string }) {
  const read = useRef<Promise<ReadExperiment>>(undefined)
  const edit = useEdit(id)
  return {
    label: `name of ${name}`,
    value: name,
    maxLength: 120,
    onBegin: () => {
      read.current = readForEdit(id)
    },
    onSave: (text: string) => edit('Rename', { name: text }, read.current ?? readForEdit(id), { name }),
  }
}
