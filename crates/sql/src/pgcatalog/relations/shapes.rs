//! Columns of the relations, as `name:type`, in PostgreSQL 15's order.
#[rustfmt::skip]
const SHAPES: &[(&str, &str, &str)] = &[
    // Of functions that answer rows.
    ("functions", "pg_get_keywords", "word:text catcode:char barelabel:bool catdesc:text baredesc:text"),
    ("pg_catalog", "pg_aggregate", "aggfnoid:regproc aggkind:char aggnumdirectargs:int2 aggtransfn:regproc \
                                    aggfinalfn:regproc aggcombinefn:regproc aggserialfn:regproc aggdeserialfn:regproc \
                                    aggmtransfn:regproc aggminvtransfn:regproc aggmfinalfn:regproc aggfinalextra:bool \
                                    aggmfinalextra:bool aggfinalmodify:char aggmfinalmodify:char aggsortop:oid \
                                    aggtranstype:oid aggtransspace:int4 aggmtranstype:oid aggmtransspace:int4 \
                                    agginitval:text aggminitval:text"),
    ("pg_catalog", "pg_am", "oid:oid amname:name amhandler:regproc amtype:char"),
    ("pg_catalog", "pg_amop", "oid:oid amopfamily:oid amoplefttype:oid amoprighttype:oid amopstrategy:int2 \
        amoppurpose:char amopopr:oid amopmethod:oid amopsortfamily:oid"),
    ("pg_catalog", "pg_amproc", "oid:oid amprocfamily:oid amproclefttype:oid amprocrighttype:oid amprocnum:int2 \
        amproc:regproc"),
    ("pg_catalog", "pg_attrdef", "oid:oid adrelid:oid adnum:int2 adbin:pg_node_tree"),
    ("pg_catalog", "pg_attribute", "attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen:int2 attnum:int2 \
                                    attndims:int4 attcacheoff:int4 atttypmod:int4 attbyval:bool attalign:char \
                                    attstorage:char attcompression:char attnotnull:bool atthasdef:bool \
                                    atthasmissing:bool attidentity:char attgenerated:char attisdropped:bool \
                                    attislocal:bool attinhcount:int4 attcollation:oid attacl:_text attoptions:_text \
                                    attfdwoptions:_text attmissingval:anyarray"),
    ("pg_catalog", "pg_auth_members", "roleid:oid member:oid grantor:oid admin_option:bool"),
    ("pg_catalog", "pg_authid", "oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool \
                                 rolcreatedb:bool rolcanlogin:bool rolreplication:bool rolbypassrls:bool \
                                 rolconnlimit:int4 rolpassword:text rolvaliduntil:timestamptz"),
    ("pg_catalog", "pg_cast", "oid:oid castsource:oid casttarget:oid castfunc:oid castcontext:char castmethod:char"),
    ("pg_catalog", "pg_class", "oid:oid relname:name relnamespace:oid reltype:oid reloftype:oid relowner:oid \
                                relam:oid relfilenode:oid reltablespace:oid relpages:int4 reltuples:float4 \
                                relallvisible:int4 reltoastrelid:oid relhasindex:bool relisshared:bool \
                                relpersistence:char relkind:char relnatts:int2 relchecks:int2 relhasrules:bool \
                                relhastriggers:bool relhassubclass:bool relrowsecurity:bool relforcerowsecurity:bool \
                                relispopulated:bool relreplident:char relispartition:bool relrewrite:oid \
                                relfrozenxid:xid relminmxid:xid relacl:_text reloptions:_text \
                                relpartbound:pg_node_tree"),
    ("pg_catalog", "pg_collation", "oid:oid collname:name collnamespace:oid collowner:oid collprovider:char \
                                    collisdeterministic:bool collencoding:int4 collcollate:text collctype:text \
                                    colliculocale:text collversion:text"),
    ("pg_catalog", "pg_constraint", "oid:oid conname:name connamespace:oid contype:char condeferrable:bool \
                                     condeferred:bool convalidated:bool conrelid:oid contypid:oid conindid:oid \
                                     conparentid:oid confrelid:oid confupdtype:char confdeltype:char \
                                     confmatchtype:char conislocal:bool coninhcount:int4 connoinherit:bool \
                                     conkey:_int2 confkey:_int2 conpfeqop:_oid conppeqop:_oid conffeqop:_oid \
                                     confdelsetcols:_int2 conexclop:_oid conbin:pg_node_tree"),
    ("pg_catalog", "pg_conversion", "oid:oid conname:name connamespace:oid conowner:oid conforencoding:int4 \
                                     contoencoding:int4 conproc:regproc condefault:bool"),
    ("pg_catalog", "pg_cursors", "name:text statement:text is_holdable:bool is_binary:bool is_scrollable:bool \
                                  creation_time:timestamptz"),
    ("pg_catalog", "pg_database", "oid:oid datname:name datdba:oid encoding:int4 datlocprovider:char \
                                   datistemplate:bool datallowconn:bool datconnlimit:int4 datfrozenxid:xid \
                                   datminmxid:xid dattablespace:oid datcollate:text datctype:text daticulocale:text \
                                   datcollversion:text datacl:_text"),
    ("pg_catalog", "pg_db_role_setting", "setdatabase:oid setrole:oid setconfig:_text"),
    ("pg_catalog", "pg_default_acl", "oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype:char \
                                      defaclacl:_text"),
    ("pg_catalog", "pg_depend", "classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid refobjsubid:int4 \
                                 deptype:char"),
    ("pg_catalog", "pg_description", "objoid:oid classoid:oid objsubid:int4 description:text"),
    ("pg_catalog", "pg_enum", "oid:oid enumtypid:oid enumsortorder:float4 enumlabel:name"),
    ("pg_catalog", "pg_event_trigger", "oid:oid evtname:name evtevent:name evtowner:oid evtfoid:oid evtenabled:char \
                                        evttags:_text"),
    ("pg_catalog", "pg_extension", "oid:oid extname:name extowner:oid extnamespace:oid extrelocatable:bool \
                                    extversion:text extconfig:_oid extcondition:_text"),
    ("pg_catalog", "pg_foreign_data_wrapper", "oid:oid fdwname:name fdwowner:oid fdwhandler:oid fdwvalidator:oid \
        fdwacl:_aclitem fdwoptions:_text"),
    ("pg_catalog", "pg_foreign_server", "oid:oid srvname:name srvowner:oid srvfdw:oid srvtype:text srvversion:text \
                                         srvacl:_text srvoptions:_text"),
    ("pg_catalog", "pg_foreign_table", "ftrelid:oid ftserver:oid ftoptions:_text"),
    ("pg_catalog", "pg_index", "indexrelid:oid indrelid:oid indnatts:int2 indnkeyatts:int2 indisunique:bool \
                                indnullsnotdistinct:bool indisprimary:bool indisexclusion:bool indimmediate:bool \
                                indisclustered:bool indisvalid:bool indcheckxmin:bool indisready:bool indislive:bool \
                                indisreplident:bool indkey:int2vector indcollation:oidvector indclass:oidvector \
                                indoption:int2vector indexprs:pg_node_tree indpred:pg_node_tree"),
    ("pg_catalog", "pg_indexes", "schemaname:name tablename:name indexname:name tablespace:name indexdef:text"),
    ("pg_catalog", "pg_inherits", "inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool"),
    ("pg_catalog", "pg_init_privs", "objoid:oid classoid:oid objsubid:int4 privtype:char initprivs:_aclitem"),
    ("pg_catalog", "pg_language", "oid:oid lanname:name lanowner:oid lanispl:bool lanpltrusted:bool lanplcallfoid:oid \
                                   laninline:oid lanvalidator:oid lanacl:_aclitem"),
    ("pg_catalog", "pg_largeobject_metadata", "oid:oid lomowner:oid lomacl:_aclitem"),
    ("pg_catalog", "pg_matviews", "schemaname:name matviewname:name matviewowner:name tablespace:name hasindexes:bool \
                                   ispopulated:bool definition:text"),
    ("pg_catalog", "pg_namespace", "oid:oid nspname:name nspowner:oid nspacl:_text"),
    ("pg_catalog", "pg_opclass", "oid:oid opcmethod:oid opcname:name opcnamespace:oid opcowner:oid opcfamily:oid \
                                  opcintype:oid opcdefault:bool opckeytype:oid"),
    ("pg_catalog", "pg_operator", "oid:oid oprname:name oprnamespace:oid oprowner:oid oprkind:char oprcanmerge:bool \
                                   oprcanhash:bool oprleft:oid oprright:oid oprresult:oid oprcom:oid oprnegate:oid \
                                   oprcode:regproc oprrest:regproc oprjoin:regproc"),
    ("pg_catalog", "pg_opfamily", "oid:oid opfmethod:oid opfname:name opfnamespace:oid opfowner:oid"),
    ("pg_catalog", "pg_parameter_acl", "oid:oid parname:text paracl:_text"),
    ("pg_catalog", "pg_partitioned_table", "partrelid:oid partstrat:char partnatts:int2 partdefid:oid \
                                            partattrs:int2vector partclass:oidvector partcollation:oidvector \
                                            partexprs:pg_node_tree"),
    ("pg_catalog", "pg_policies", "schemaname:name tablename:name policyname:name permissive:text roles:_name \
                                   cmd:text qual:text with_check:text"),
    ("pg_catalog", "pg_policy", "oid:oid polname:name polrelid:oid polcmd:char polpermissive:bool polroles:_oid \
                                 polqual:pg_node_tree polwithcheck:pg_node_tree"),
    ("pg_catalog", "pg_proc", "oid:oid proname:name pronamespace:oid proowner:oid prolang:oid procost:float4 \
                               prorows:float4 provariadic:oid prosupport:regproc prokind:char prosecdef:bool \
                               proleakproof:bool proisstrict:bool proretset:bool provolatile:char proparallel:char \
                               pronargs:int2 pronargdefaults:int2 prorettype:oid proargtypes:oidvector \
                               proallargtypes:_oid proargmodes:_char proargnames:_text proargdefaults:pg_node_tree \
                               protrftypes:_oid prosrc:text probin:text prosqlbody:pg_node_tree proconfig:_text \
                               proacl:_text"),
    ("pg_catalog", "pg_publication", "oid:oid pubname:name pubowner:oid puballtables:bool pubinsert:bool \
                                      pubupdate:bool pubdelete:bool pubtruncate:bool pubviaroot:bool"),
    ("pg_catalog", "pg_publication_namespace", "oid:oid pnpubid:oid pnnspid:oid"),
    ("pg_catalog", "pg_publication_rel", "oid:oid prpubid:oid prrelid:oid prqual:pg_node_tree prattrs:int2vector"),
    ("pg_catalog", "pg_range", "rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid \
                                rngcanonical:regproc rngsubdiff:regproc"),
    ("pg_catalog", "pg_rewrite", "oid:oid rulename:name ev_class:oid ev_type:char ev_enabled:char is_instead:bool \
                                  ev_qual:pg_node_tree ev_action:pg_node_tree"),
    ("pg_catalog", "pg_roles", "rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool \
                                rolcanlogin:bool rolreplication:bool rolconnlimit:int4 rolpassword:text \
                                rolvaliduntil:timestamptz rolbypassrls:bool rolconfig:_text oid:oid"),
    ("pg_catalog", "pg_rules", "schemaname:name tablename:name rulename:name definition:text"),
    ("pg_catalog", "pg_seclabel", "objoid:oid classoid:oid objsubid:int4 provider:text label:text"),
    ("pg_catalog", "pg_seclabels", "objoid:oid classoid:oid objsubid:int4 objtype:text objnamespace:oid \
        objname:text provider:text label:text"),
    ("pg_catalog", "pg_sequence", "seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8 seqmax:int8 seqmin:int8 \
                                   seqcache:int8 seqcycle:bool"),
    ("pg_catalog", "pg_sequences", "schemaname:name sequencename:name sequenceowner:name data_type:regtype \
                                    start_value:int8 min_value:int8 max_value:int8 increment_by:int8 cycle:bool \
                                    cache_size:int8 last_value:int8"),
    ("pg_catalog", "pg_settings", "name:text setting:text unit:text category:text short_desc:text extra_desc:text \
                                   context:text vartype:text source:text min_val:text max_val:text enumvals:_text \
                                   boot_val:text reset_val:text sourcefile:text sourceline:int4 pending_restart:bool"),
    ("pg_catalog", "pg_shdepend", "dbid:oid classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid \
                                   deptype:char"),
    ("pg_catalog", "pg_shdescription", "objoid:oid classoid:oid description:text"),
    ("pg_catalog", "pg_shseclabel", "objoid:oid classoid:oid provider:text label:text"),
    ("pg_catalog", "pg_statistic_ext", "oid:oid stxrelid:oid stxname:name stxnamespace:oid stxowner:oid \
                                        stxstattarget:int4 stxkeys:int2vector stxkind:_char stxexprs:pg_node_tree"),
    ("pg_catalog", "pg_statistic_ext_data", "stxoid:oid stxdinherit:bool stxdndistinct:pg_ndistinct \
                                             stxddependencies:pg_dependencies stxdmcv:pg_mcv_list \
                                             stxdexpr:_pg_statistic"),
    ("pg_catalog", "pg_subscription", "oid:oid subdbid:oid subskiplsn:pg_lsn subname:name subowner:oid \
                                       subenabled:bool subbinary:bool substream:bool subtwophasestate:char \
                                       subdisableonerr:bool subconninfo:text subslotname:name subsynccommit:text \
                                       subpublications:_text"),
    ("pg_catalog", "pg_tables", "schemaname:name tablename:name tableowner:name tablespace:name hasindexes:bool \
                                 hasrules:bool hastriggers:bool rowsecurity:bool"),
    ("pg_catalog", "pg_tablespace", "oid:oid spcname:name spcowner:oid spcacl:_text spcoptions:_text"),
    ("pg_catalog", "pg_transform", "oid:oid trftype:oid trflang:oid trffromsql:regproc trftosql:regproc"),
    ("pg_catalog", "pg_trigger", "oid:oid tgrelid:oid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 \
                                  tgenabled:char tgisinternal:bool tgconstrrelid:oid tgconstrindid:oid \
                                  tgconstraint:oid tgdeferrable:bool tginitdeferred:bool tgnargs:int2 \
                                  tgattr:int2vector tgargs:bytea tgqual:pg_node_tree tgoldtable:name tgnewtable:name"),
    ("pg_catalog", "pg_ts_config", "oid:oid cfgname:name cfgnamespace:oid cfgowner:oid cfgparser:oid"),
    ("pg_catalog", "pg_ts_dict", "oid:oid dictname:name dictnamespace:oid dictowner:oid dicttemplate:oid \
                                  dictinitoption:text"),
    ("pg_catalog", "pg_ts_parser", "oid:oid prsname:name prsnamespace:oid prsstart:regproc prstoken:regproc \
                                    prsend:regproc prsheadline:regproc prslextype:regproc"),
    ("pg_catalog", "pg_ts_template", "oid:oid tmplname:name tmplnamespace:oid tmplinit:regproc tmpllexize:regproc"),
    ("pg_catalog", "pg_type", "oid:oid typname:name typnamespace:oid typowner:oid typlen:int2 typbyval:bool \
                               typtype:char typcategory:char typispreferred:bool typisdefined:bool typdelim:char \
                               typrelid:oid typsubscript:regproc typelem:oid typarray:oid typinput:regproc \
                               typoutput:regproc typreceive:regproc typsend:regproc typmodin:regproc \
                               typmodout:regproc typanalyze:regproc typalign:char typstorage:char typnotnull:bool \
                               typbasetype:oid typtypmod:int4 typndims:int4 typcollation:oid \
                               typdefaultbin:pg_node_tree typdefault:text typacl:_text"),
    ("pg_catalog", "pg_user", "usename:name usesysid:oid usecreatedb:bool usesuper:bool userepl:bool \
                               usebypassrls:bool passwd:text valuntil:timestamptz useconfig:_text"),
    ("pg_catalog", "pg_user_mapping", "oid:oid umuser:oid umserver:oid umoptions:_text"),
    ("pg_catalog", "pg_user_mappings", "umid:oid srvid:oid srvname:name umuser:oid usename:name umoptions:_text"),
    ("pg_catalog", "pg_views", "schemaname:name viewname:name viewowner:name definition:text"),
    ("information_schema", "administrable_role_authorizations", "grantee:name role_name:name is_grantable:text"),
    ("information_schema", "applicable_roles", "grantee:name role_name:name is_grantable:text"),
    ("information_schema", "attributes", "udt_catalog:name udt_schema:name udt_name:name attribute_name:name \
        ordinal_position:int4 attribute_default:text is_nullable:text data_type:text character_maximum_length:int4 \
        character_octet_length:int4 character_set_catalog:name character_set_schema:name character_set_name:name \
        collation_catalog:name collation_schema:name collation_name:name numeric_precision:int4 \
        numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:text \
        interval_precision:int4 attribute_udt_catalog:name attribute_udt_schema:name attribute_udt_name:name \
        scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 dtd_identifier:name \
        is_derived_reference_attribute:text"),
    ("information_schema", "character_sets", "character_set_catalog:name character_set_schema:name \
        character_set_name:name character_repertoire:name form_of_use:name default_collate_catalog:name \
        default_collate_schema:name default_collate_name:name"),
    ("information_schema", "check_constraint_routine_usage", "constraint_catalog:name constraint_schema:name \
        constraint_name:name specific_catalog:name specific_schema:name specific_name:name"),
    ("information_schema", "check_constraints", "constraint_catalog:name constraint_schema:name constraint_name:name \
        check_clause:text"),
    ("information_schema", "collation_character_set_applicability", "collation_catalog:name collation_schema:name \
        collation_name:name character_set_catalog:name character_set_schema:name character_set_name:name"),
    ("information_schema", "collations", "collation_catalog:name collation_schema:name collation_name:name \
        pad_attribute:text"),
    ("information_schema", "column_column_usage", "table_catalog:name table_schema:name table_name:name \
        column_name:name dependent_column:name"),
    ("information_schema", "column_domain_usage", "domain_catalog:name domain_schema:name domain_name:name \
        table_catalog:name table_schema:name table_name:name column_name:name"),
    ("information_schema", "column_options", "table_catalog:name table_schema:name table_name:name column_name:name \
        option_name:name option_value:text"),
    ("information_schema", "column_privileges", "grantor:name grantee:name table_catalog:name table_schema:name \
        table_name:name column_name:name privilege_type:text is_grantable:text"),
    ("information_schema", "column_udt_usage", "udt_catalog:name udt_schema:name udt_name:name table_catalog:name \
        table_schema:name table_name:name column_name:name"),
    ("information_schema", "columns", "table_catalog:name table_schema:name table_name:name column_name:name \
                                       ordinal_position:int4 column_default:text is_nullable:text data_type:text \
                                       character_maximum_length:int4 character_octet_length:int4 \
                                       numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 \
                                       datetime_precision:int4 interval_type:text interval_precision:int4 \
                                       character_set_catalog:name character_set_schema:name character_set_name:name \
                                       collation_catalog:name collation_schema:name collation_name:name \
                                       domain_catalog:name domain_schema:name domain_name:name udt_catalog:name \
                                       udt_schema:name udt_name:name scope_catalog:name scope_schema:name \
                                       scope_name:name maximum_cardinality:int4 dtd_identifier:name \
                                       is_self_referencing:text is_identity:text identity_generation:text \
                                       identity_start:text identity_increment:text identity_maximum:text \
                                       identity_minimum:text identity_cycle:text is_generated:text \
                                       generation_expression:text is_updatable:text"),
    ("information_schema", "constraint_column_usage", "table_catalog:name table_schema:name table_name:name \
        column_name:name constraint_catalog:name constraint_schema:name constraint_name:name"),
    ("information_schema", "constraint_table_usage", "table_catalog:name table_schema:name table_name:name \
        constraint_catalog:name constraint_schema:name constraint_name:name"),
    ("information_schema", "domain_constraints", "constraint_catalog:name constraint_schema:name constraint_name:name \
        domain_catalog:name domain_schema:name domain_name:name is_deferrable:text initially_deferred:text"),
    ("information_schema", "domain_udt_usage", "udt_catalog:name udt_schema:name udt_name:name domain_catalog:name \
        domain_schema:name domain_name:name"),
    ("information_schema", "domains", "domain_catalog:name domain_schema:name domain_name:name data_type:text \
                                       character_maximum_length:int4 character_octet_length:int4 \
                                       character_set_catalog:name character_set_schema:name character_set_name:name \
                                       collation_catalog:name collation_schema:name collation_name:name \
                                       numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 \
                                       datetime_precision:int4 interval_type:text interval_precision:int4 \
                                       domain_default:text udt_catalog:name udt_schema:name udt_name:name \
                                       scope_catalog:name scope_schema:name scope_name:name \
                                       maximum_cardinality:int4 dtd_identifier:name"),
    ("information_schema", "enabled_roles", "role_name:name"),
    ("information_schema", "foreign_data_wrapper_options", "foreign_data_wrapper_catalog:name \
        foreign_data_wrapper_name:name option_name:name option_value:text"),
    ("information_schema", "foreign_data_wrappers", "foreign_data_wrapper_catalog:name \
        foreign_data_wrapper_name:name authorization_identifier:name library_name:text \
        foreign_data_wrapper_language:text"),
    ("information_schema", "foreign_server_options", "foreign_server_catalog:name foreign_server_name:name \
        option_name:name option_value:text"),
    ("information_schema", "foreign_servers", "foreign_server_catalog:name foreign_server_name:name \
        foreign_data_wrapper_catalog:name foreign_data_wrapper_name:name foreign_server_type:text \
        foreign_server_version:text authorization_identifier:name"),
    ("information_schema", "foreign_table_options", "foreign_table_catalog:name foreign_table_schema:name \
        foreign_table_name:name option_name:name option_value:text"),
    ("information_schema", "foreign_tables", "foreign_table_catalog:name foreign_table_schema:name \
        foreign_table_name:name foreign_server_catalog:name foreign_server_name:name"),
    ("information_schema", "information_schema_catalog_name", "catalog_name:name"),
    ("information_schema", "key_column_usage", "constraint_catalog:name constraint_schema:name constraint_name:name \
        table_catalog:name table_schema:name table_name:name column_name:name ordinal_position:int4 \
        position_in_unique_constraint:int4"),
    ("information_schema", "parameters", "specific_catalog:name specific_schema:name specific_name:name \
        ordinal_position:int4 parameter_mode:text is_result:text as_locator:text parameter_name:name data_type:text \
        character_maximum_length:int4 character_octet_length:int4 character_set_catalog:name \
        character_set_schema:name character_set_name:name collation_catalog:name collation_schema:name \
        collation_name:name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 \
        datetime_precision:int4 interval_type:text interval_precision:int4 udt_catalog:name udt_schema:name \
        udt_name:name scope_catalog:name scope_schema:name scope_name:name maximum_cardinality:int4 \
        dtd_identifier:name parameter_default:text"),
    ("information_schema", "referential_constraints", "constraint_catalog:name constraint_schema:name \
        constraint_name:name unique_constraint_catalog:name unique_constraint_schema:name unique_constraint_name:name \
        match_option:text update_rule:text delete_rule:text"),
    ("information_schema", "role_column_grants", "grantor:name grantee:name table_catalog:name table_schema:name \
        table_name:name column_name:name privilege_type:text is_grantable:text"),
    ("information_schema", "role_routine_grants", "grantor:name grantee:name specific_catalog:name \
        specific_schema:name specific_name:name routine_catalog:name routine_schema:name routine_name:name \
        privilege_type:text is_grantable:text"),
    ("information_schema", "role_table_grants", "grantor:name grantee:name table_catalog:name table_schema:name \
        table_name:name privilege_type:text is_grantable:text with_hierarchy:text"),
    ("information_schema", "routine_column_usage", "specific_catalog:name specific_schema:name specific_name:name \
        routine_catalog:name routine_schema:name routine_name:name table_catalog:name table_schema:name \
        table_name:name column_name:name"),
    ("information_schema", "routine_privileges", "grantor:name grantee:name specific_catalog:name \
        specific_schema:name specific_name:name routine_catalog:name routine_schema:name routine_name:name \
        privilege_type:text is_grantable:text"),
    ("information_schema", "routine_routine_usage", "specific_catalog:name specific_schema:name specific_name:name \
        routine_catalog:name routine_schema:name routine_name:name"),
    ("information_schema", "routine_sequence_usage", "specific_catalog:name specific_schema:name specific_name:name \
        routine_catalog:name routine_schema:name routine_name:name sequence_catalog:name sequence_schema:name \
        sequence_name:name"),
    ("information_schema", "routine_table_usage", "specific_catalog:name specific_schema:name specific_name:name \
        routine_catalog:name routine_schema:name routine_name:name table_catalog:name table_schema:name \
        table_name:name"),
    ("information_schema", "routines", "specific_catalog:name specific_schema:name specific_name:name \
        routine_catalog:name routine_schema:name routine_name:name routine_type:text module_catalog:name \
        module_schema:name module_name:name udt_catalog:name udt_schema:name udt_name:name data_type:text \
        character_maximum_length:int4 character_octet_length:int4 character_set_catalog:name \
        character_set_schema:name character_set_name:name collation_catalog:name collation_schema:name \
        collation_name:name numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 \
        datetime_precision:int4 interval_type:text interval_precision:int4 type_udt_catalog:name \
        type_udt_schema:name type_udt_name:name scope_catalog:name scope_schema:name scope_name:name \
        maximum_cardinality:int4 dtd_identifier:name routine_body:text routine_definition:text external_name:text \
        external_language:text parameter_style:text is_deterministic:text sql_data_access:text is_null_call:text \
        sql_path:text schema_level_routine:text max_dynamic_result_sets:int4 is_user_defined_cast:text \
        is_implicitly_invocable:text security_type:text to_sql_specific_catalog:name to_sql_specific_schema:name \
        to_sql_specific_name:name as_locator:text created:timestamptz last_altered:timestamptz \
        new_savepoint_level:text is_udt_dependent:text result_cast_from_data_type:text result_cast_as_locator:text \
        result_cast_char_max_length:int4 result_cast_char_octet_length:int4 result_cast_char_set_catalog:name \
        result_cast_char_set_schema:name result_cast_char_set_name:name result_cast_collation_catalog:name \
        result_cast_collation_schema:name result_cast_collation_name:name result_cast_numeric_precision:int4 \
        result_cast_numeric_precision_radix:int4 result_cast_numeric_scale:int4 result_cast_datetime_precision:int4 \
        result_cast_interval_type:text result_cast_interval_precision:int4 result_cast_type_udt_catalog:name \
        result_cast_type_udt_schema:name result_cast_type_udt_name:name result_cast_scope_catalog:name \
        result_cast_scope_schema:name result_cast_scope_name:name result_cast_maximum_cardinality:int4 \
        result_cast_dtd_identifier:name"),
    ("information_schema", "schemata", "catalog_name:name schema_name:name schema_owner:name \
                                        default_character_set_catalog:name default_character_set_schema:name \
                                        default_character_set_name:name sql_path:text"),
    ("information_schema", "sequences", "sequence_catalog:name sequence_schema:name sequence_name:name data_type:text \
                                         numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 \
                                         start_value:text minimum_value:text maximum_value:text increment:text \
                                         cycle_option:text"),
    ("information_schema", "table_constraints", "constraint_catalog:name constraint_schema:name constraint_name:name \
        table_catalog:name table_schema:name table_name:name constraint_type:text is_deferrable:text \
        initially_deferred:text enforced:text nulls_distinct:text"),
    ("information_schema", "table_privileges", "grantor:name grantee:name table_catalog:name table_schema:name \
        table_name:name privilege_type:text is_grantable:text with_hierarchy:text"),
    ("information_schema", "tables", "table_catalog:name table_schema:name table_name:name table_type:text \
                                      self_referencing_column_name:name reference_generation:text \
                                      user_defined_type_catalog:name user_defined_type_schema:name \
                                      user_defined_type_name:name is_insertable_into:text is_typed:text \
                                      commit_action:text"),
    ("information_schema", "transforms", "udt_catalog:name udt_schema:name udt_name:name specific_catalog:name \
        specific_schema:name specific_name:name group_name:name transform_type:text"),
    ("information_schema", "triggered_update_columns", "trigger_catalog:name trigger_schema:name trigger_name:name \
        event_object_catalog:name event_object_schema:name event_object_table:name event_object_column:name"),
    ("information_schema", "triggers", "trigger_catalog:name trigger_schema:name trigger_name:name \
        event_manipulation:text event_object_catalog:name event_object_schema:name event_object_table:name \
        action_order:int4 action_condition:text action_statement:text action_orientation:text action_timing:text \
        action_reference_old_table:name action_reference_new_table:name action_reference_old_row:name \
        action_reference_new_row:name created:timestamptz"),
    ("information_schema", "user_defined_types", "user_defined_type_catalog:name user_defined_type_schema:name \
        user_defined_type_name:name user_defined_type_category:text is_instantiable:text is_final:text \
        ordering_form:text ordering_category:text ordering_routine_catalog:name ordering_routine_schema:name \
        ordering_routine_name:name reference_type:text data_type:text character_maximum_length:int4 \
        character_octet_length:int4 character_set_catalog:name character_set_schema:name character_set_name:name \
        collation_catalog:name collation_schema:name collation_name:name numeric_precision:int4 \
        numeric_precision_radix:int4 numeric_scale:int4 datetime_precision:int4 interval_type:text \
        interval_precision:int4 source_dtd_identifier:name ref_dtd_identifier:name"),
    ("information_schema", "user_mapping_options", "authorization_identifier:name foreign_server_catalog:name \
        foreign_server_name:name option_name:name option_value:text"),
    ("information_schema", "user_mappings", "authorization_identifier:name foreign_server_catalog:name \
        foreign_server_name:name"),
    ("information_schema", "view_column_usage", "view_catalog:name view_schema:name view_name:name \
        table_catalog:name table_schema:name table_name:name column_name:name"),
    ("information_schema", "view_routine_usage", "table_catalog:name table_schema:name table_name:name \
        specific_catalog:name specific_schema:name specific_name:name"),
    ("information_schema", "view_table_usage", "view_catalog:name view_schema:name view_name:name table_catalog:name \
        table_schema:name table_name:name"),
    ("information_schema", "views", "table_catalog:name table_schema:name table_name:name view_definition:text \
                                     check_option:text is_updatable:text is_insertable_into:text \
                                     is_trigger_updatable:text is_trigger_deletable:text \
                                     is_trigger_insertable_into:text"),
];

/// The columns of a relation that the catalogue implies, if there is one of that name.
pub(super) fn stored(schema: &str, name: &str) -> Option<&'static str> {
    SHAPES.iter().find(|(s, n, _)| *s == schema && *n == name).map(|(_, _, columns)| *columns)
}

/// Those that are relations.
pub(super) fn all() -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str)> {
    SHAPES.iter().filter(|(schema, ..)| *schema != "functions").chain(super::live::SHAPES)
}

/// Whether a relation of `pg_catalog` has such a column of this type.
pub(crate) fn is_of_type(relation: &str, column: &str, of: &str) -> bool {
    let columns = stored("pg_catalog", relation).unwrap_or_default().split_whitespace();
    columns.filter_map(|one| one.split_once(':')).any(|(name, its)| name == column && its == of)
}
