import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'

import { planQuery } from '@/api/drafts'
import { toProblem } from '@/api/problem'
import type { Draft as Asked, Experiment } from '@/api/types'
import { ProblemNotice } from '@/lib/ui/notice'

import { ChangesPanel } from './changes-panel'
import { ErrorSummary, MISSING, placed, spelledOut, toldNow } from './errors'
import { advancedOf, allFields, basicFields, type Catalog, formOf, placesOf } from './form'
import { ImportToml } from './import-toml'
import { PlanPanel } from './plan-panel'
import { PresetsBar } from './presets-bar'
import { Field, Fields, Foldable, Section } from './section'
import { SnippetsPanel } from './snippets-panel'
import { ADVANCED, isOpen, type SubmitUrlState, toggled } from './url-state'
import { type Draft, useDraft } from './use-draft'
import { useSubmit } from './use-submit'

const SETTLE_MILLISECONDS = 300

interface Props {
  catalog: Catalog
  /** The name under which this tab keeps the draft; undefined for an experiment that begins empty. */
  name: string | undefined
  /** The experiment that is cloned. */
  original: Experiment | undefined
  beginning: Draft
  /** The draft that "Start over" restores. */
  afresh: Draft
  projects: string[]
  view: SubmitUrlState
  onView: (change: (view: SubmitUrlState) => SubmitUrlState) => void
}

export function Editor({ catalog, name, original, beginning, afresh, projects, view, onView }: Props) {
  const editing = useDraft(name, beginning, catalog.specification)
  const { spec, project, examples } = editing.draft
  const [attempted, setAttempted] = useState(false)
  const summary = useRef<HTMLElement>(null)

  const asked: Asked = {
    spec,
    tokens: 256,
    ...(original && { original: original.id }),
    ...(view.shape && { shape: view.shape }),
    ...(examples !== undefined && { examples }),
  }
  const settled = useDebounced(JSON.stringify(asked), SETTLE_MILLISECONDS)
  const planning = useQuery({
    ...planQuery(JSON.parse(settled) as Asked, project),
    placeholderData: keepPreviousData,
  })
  const planned = planning.data
  const submit = useSubmit(asked, project, editing.forget)

  const form = useMemo(() => formOf(catalog, spec), [catalog, spec])
  const basics = useMemo(() => basicFields(form), [form])
  const advanced = useMemo(() => advancedOf(form, basics), [form, basics])
  const places = placesOf(form).add('project')
  const required = allFields(form).flatMap((field) => (field.required ? [field.path.join('.')] : []))
  const found = spelledOut(planned?.problem?.errors ?? [], required)
  const wrong = toldNow(found, attempted)
  const errors = placed(wrong, places)
  const filled = planned?.filled ?? {}

  const busy = submit.isPending || editing.changing
  const send = async () => {
    if (busy) return // Ctrl + Enter ignores a disabled button
    setAttempted(true)
    await submit.mutateAsync().catch(() => undefined)
    requestAnimationFrame(() => summary.current?.focus())
  }

  return (
    <form
      className="spec-form"
      noValidate
      aria-label={original ? `Clone of ${original.name}` : 'New experiment'}
      onKeyDown={onlyMeant}
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <header className="page-header">
        <h1>{original ? `Clone “${original.name}”` : 'New experiment'}</h1>
        <div className="page-actions">
          <ImportToml onRead={editing.replace} />
          <button
            type="button"
            className="button"
            onClick={() => {
              setAttempted(false)
              editing.replace(afresh.spec)
              editing.assume({ project: afresh.project, examples: afresh.examples })
            }}
          >
            Start over
          </button>
          <button type="submit" className="button primary" disabled={busy} title="Ctrl + Enter">
            Submit
          </button>
        </div>
      </header>
      {original && (
        <p className="muted small">
          This is a copy of{' '}
          <Link to="/experiments/$id" params={{ id: original.id }}>
            {original.name}
          </Link>
          . If you choose another algorithm, it keeps the local options that it supports.
        </p>
      )}
      <div className="spec-columns">
        <div className="spec-inputs">
          {wrong.length > 0 && (
            <ErrorSummary
              ref={summary}
              errors={wrong}
              omitted={planned?.problem?.errors_omitted ?? 0}
              places={places}
            />
          )}
          {planned?.problem?.errors.length === 0 && <ProblemNotice problem={{ ...planned.problem, errors: [] }} />}
          {planning.error && <ProblemNotice problem={toProblem(planning.error)} />}
          <DroppedNote values={editing.dropped} />
          {projects.length > 1 && (
            <label className="spec-inline" htmlFor="field-project">
              Project
              <select
                id="field-project"
                value={project ?? ''}
                onChange={(event) => {
                  editing.assume({ project: event.target.value, examples })
                }}
              >
                {projects.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          )}
          <section className="spec-basics" aria-label="Basics">
            {basics.map(({ label, field }) => (
              <Field key={field.path.join('.')} {...{ label, field, editing, filled, errors }} />
            ))}
          </section>
          <Foldable
            {...{ editing, errors }}
            group={{ ...advanced, description: 'All other options, by the tables of the specification' }}
            title={<h2>Advanced</h2>}
            open={isOpen(view, ADVANCED)}
            onOpen={(open) => {
              onView((before) => toggled(before, ADVANCED, open))
            }}
          >
            <Fields group={{ ...advanced, groups: [] }} editing={editing} filled={filled} errors={errors} />
            {advanced.groups.map((group) => (
              <Section
                key={group.path.join('.')}
                group={group}
                editing={editing}
                filled={filled}
                errors={errors}
                open={isOpen(view, group.path.join('.'))}
                onOpen={(open) => {
                  onView((before) => toggled(before, group.path.join('.'), open))
                }}
              />
            ))}
          </Foldable>
        </div>
        <aside className="spec-beside" aria-label="Plan and snippets">
          {original && planned && <ChangesPanel original={original} filled={filled} />}
          <PlanPanel
            planned={planned}
            waiting={planning.isFetching || settled !== JSON.stringify(asked)}
            missing={found.flatMap(({ field, message }) => (message === MISSING ? [field] : []))}
            shape={view.shape}
            examples={examples}
            onShape={(shape) => {
              onView((before) => ({ ...before, shape }))
            }}
            onExamples={(count) => {
              editing.assume({ project, examples: count })
            }}
          />
          <PresetsBar disabled={editing.changing} onChoose={editing.preset} />
          <SnippetsPanel
            spec={spec}
            original={original && planned?.change ? { id: original.id, change: planned.change } : undefined}
            project={projects.length > 1 ? project : undefined}
            chosen={view.as ?? 'toml'}
            onChoose={(snippet) => {
              onView((before) => ({ ...before, as: snippet === 'toml' ? undefined : snippet }))
            }}
          />
        </aside>
      </div>
    </form>
  )
}

function DroppedNote({ values }: { values: Record<string, unknown> }) {
  const dropped = Object.entries(values).map(([field, value]) => `${field} = ${JSON.stringify(value)}`)
  return (
    <p role="status" className={dropped.length > 0 ? 'spec-advice small' : 'visually-hidden'}>
      {dropped.length > 0 && `Dropped by this change: ${dropped.join(', ')}.`}
    </p>
  )
}

/** Enter alone does not start an experiment from the middle of a form; Ctrl + Enter does. */
function onlyMeant(event: KeyboardEvent<HTMLFormElement>) {
  if (event.key !== 'Enter' || !(event.target instanceof HTMLInputElement)) return
  event.preventDefault()
  if (event.ctrlKey || event.metaKey) event.currentTarget.requestSubmit()
}

/** The value once it has stayed the same for a while, so that typing does not cause a request per letter. */
function useDebounced<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => {
      setSettled(value)
    }, milliseconds)
    return () => {
      clearTimeout(timer)
    }
  }, [value, milliseconds])
  return settled
}
