// What the boards may be made of: Grafana's own types, with what they leave open said for the kinds of panels that are used.
import type * as schema from '@grafana/schema';
import type * as heatmap from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as timeline from '@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as text from '@grafana/schema/dist/esm/raw/composable/text/panelcfg/x/TextPanelCfg_types.gen';
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// As JSON has it: an enum's value is a plain string there.
type Json<T> = T extends string ? `${T}` : T extends object ? { [Key in keyof T]: Json<T[Key]> } : T;

// Of Prometheus, which the schema does not cover.
interface Query {
  datasource: schema.DataSourceRef;
  editorMode: 'code';
  expr: string;
  format: 'time_series' | 'heatmap' | 'table';
  instant: boolean;
  legendFormat: string;
  range: boolean;
  refId: string;
}
interface Annotation extends schema.AnnotationQuery {
  expr: string;
  step: string;
  tagKeys: string;
  textFormat: string;
  titleFormat: string;
  useValueForTime: boolean;
}

interface Fields<Custom> {
  defaults: Omit<Json<schema.FieldConfig>, 'custom'> & { custom?: Json<Partial<Custom>> };
  overrides: [];
}
type Panel<Kind, Options, Custom> = Omit<Json<schema.Panel>, 'type' | 'options' | 'fieldConfig' | 'targets'> & {
  type: Kind;
  options: Json<Options>;
  fieldConfig: Fields<Custom>;
  targets?: Query[];
};
type AnyPanel =
  | Panel<'heatmap', Partial<heatmap.Options>, heatmap.FieldConfig>
  | Panel<'stat', Partial<stat.Options>, {}>
  | Panel<'state-timeline', timeline.Options, timeline.FieldConfig>
  | Panel<'table', Partial<table.Options>, table.FieldConfig>
  | Panel<'text', text.Options, {}>
  | Panel<'timeseries', timeseries.Options, timeseries.FieldConfig>
  | (Json<schema.RowPanel> & { panels: [] });

export type Dashboard = Omit<Json<schema.Dashboard>, 'panels' | 'annotations'> & {
  panels: AnyPanel[];
  annotations: { list: Json<Annotation>[] };
};
