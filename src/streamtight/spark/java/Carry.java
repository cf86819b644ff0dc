package streamtight;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * Carries a column of the input through a plan that does not know it, so that rows of different values never meet.
 *
 * What groups rows groups them by the column too, and what joins two streams joins them on it. Then every value has a
 * stream of its own, though all of them share a query. A plan that has anything else in it is refused.
 *
 * Nodes are copied by their arguments in order, since their constructors differ between Spark versions.
 */
public class Carry {
  private static final List ROW_BY_ROW =
      Arrays.asList(
          new Object[] {
            "Filter", "SubqueryAlias", "View", "Repartition", "RepartitionByExpression", "Generate", "ResolvedHint",
            "Distinct", "Sort"
          });
  // The evaluation types of Python functions that get the values of one row at a time.
  private static final List ROW_WISE_PYTHON = Arrays.asList(new Object[] {Integer.valueOf(100), Integer.valueOf(101)});

  /** The output of this Dataset with the column at the end; an IllegalArgumentException says why that cannot be. */
  public static Object carry(Dataset output, String column) throws Exception {
    Object execution = output.getClass().getMethod("queryExecution", new Class[0]).invoke(output, new Object[0]);
    LogicalPlan plan = (LogicalPlan) execution.getClass().getMethod("analyzed", new Class[0]).invoke(execution, new Object[0]);
    ArrayList wanted = listed(plan.output());
    LogicalPlan carried = carry(plan, column);
    Attribute found = find(carried, column);
    if (found == null) {
      throw new IllegalArgumentException("the output does not come from the input");
    }
    wanted.add(found);
    LogicalPlan last = new Project(seq(wanted), carried);
    Object session = output.getClass().getMethod("sparkSession", new Class[0]).invoke(output, new Object[0]);
    Class companion = Class.forName("org.apache.spark.sql.classic.Dataset$");
    Method[] methods = companion.getMethods();
    for (int m = 0; m < methods.length; m++) {
      if (methods[m].getName().equals("ofRows") && methods[m].getParameterCount() == 2) {
        return methods[m].invoke(companion.getField("MODULE$").get(null), new Object[] {session, last});
      }
    }
    throw new IllegalStateException("this Spark has no Dataset.ofRows(session, plan)");
  }

  private static LogicalPlan carry(LogicalPlan plan, String column) throws Exception {
    ArrayList children = new ArrayList();
    int carrying = 0;
    ArrayList own = listed(plan.children());
    for (int c = 0; c < own.size(); c++) {
      LogicalPlan child = carry((LogicalPlan) own.get(c), column);
      children.add(child);
      carrying += find(child, column) == null ? 0 : 1;
    }
    if (children.isEmpty()) {
      if (plan.isStreaming() && find(plan, column) == null) {
        throw new IllegalArgumentException("the job reads another stream: " + plan.toString().trim());
      }
      return plan;
    }
    if (!listed(plan.subqueries()).isEmpty()) {
      throw new IllegalArgumentException("the job has a subquery");
    }
    if (carrying == 0) {
      return plan; // a table beside the stream
    }
    requireRowWise(plan);
    LogicalPlan made = withColumn(plan, children, carrying, column);
    if (find(made, column) == null) {
      throw new IllegalArgumentException(plan.nodeName() + " does not let a column through");
    }
    return made;
  }

  private static LogicalPlan withColumn(LogicalPlan plan, List children, int carrying, String column) throws Exception {
    String name = plan.nodeName();
    Attribute mine = find((LogicalPlan) children.get(0), column);
    if (name.equals("Union")) {
      return union(plan, children, carrying, column);
    }
    LogicalPlan made = (LogicalPlan) plan.withNewChildren(seq(children));
    if (ROW_BY_ROW.contains(name)) {
      return made;
    }
    if (name.equals("Project")) {
      return find(made, column) != null ? made : appended(made, new int[] {0}, mine);
    }
    if (name.equals("Aggregate")) {
      if (((scala.collection.Seq) made.productElement(0)).isEmpty()) {
        throw new IllegalArgumentException("an aggregate of everything has a row even where nothing came");
      }
      return appended(made, new int[] {0, 1}, mine);
    }
    if (name.equals("Deduplicate")) {
      return appended(made, new int[] {0}, mine);
    }
    if (name.equals("Join")) {
      return join(made, children, carrying, column);
    }
    throw new IllegalArgumentException(name + " may mix rows of different cases");
  }

  /** A copy with this attribute at the end of these arguments, which are lists of expressions. */
  private static LogicalPlan appended(LogicalPlan plan, int[] places, Attribute attribute) {
    Object[] arguments = arguments(plan);
    for (int p = 0; p < places.length; p++) {
      ArrayList longer = listed((scala.collection.Seq) arguments[places[p]]);
      longer.add(attribute);
      arguments[places[p]] = seq(longer);
    }
    return (LogicalPlan) plan.makeCopy(arguments);
  }

  /** Columns are matched by their places, so the column is made the last one everywhere. */
  private static LogicalPlan union(LogicalPlan plan, List children, int carrying, String column) {
    if (carrying < children.size()) {
      throw new IllegalArgumentException("the job adds a table to the stream");
    }
    ArrayList last = new ArrayList();
    for (int c = 0; c < children.size(); c++) {
      LogicalPlan child = (LogicalPlan) children.get(c);
      Attribute mine = find(child, column);
      ArrayList columns = new ArrayList();
      ArrayList all = listed(child.output());
      for (int a = 0; a < all.size(); a++) {
        if (((Attribute) all.get(a)).exprId().id() != mine.exprId().id()) {
          columns.add(all.get(a));
        }
      }
      columns.add(mine);
      last.add(new Project(seq(columns), child));
    }
    return (LogicalPlan) plan.withNewChildren(seq(last));
  }

  /** Two streams are joined on the column too; a stream may be joined with a table if only its own rows come out. */
  private static LogicalPlan join(LogicalPlan plan, List children, int carrying, String column) {
    Object[] arguments = arguments(plan); // left, right, type, condition, hint
    String type = String.valueOf(arguments[2]);
    if (carrying == 1) {
      boolean isLeft = find((LogicalPlan) children.get(0), column) != null;
      boolean isFine =
          type.equals("Inner") || type.equals("Cross") || type.equals(isLeft ? "LeftOuter" : "RightOuter")
              || (isLeft && (type.equals("LeftSemi") || type.equals("LeftAnti")));
      if (!isFine) {
        throw new IllegalArgumentException("a " + type + " join may give rows that come from no case");
      }
      return plan;
    }
    if (!type.equals("Inner")) {
      throw new IllegalArgumentException("a " + type + " join of two streams needs a watermark, which cases would share");
    }
    Expression same =
        new EqualTo(find((LogicalPlan) children.get(0), column), find((LogicalPlan) children.get(1), column));
    scala.Option condition = (scala.Option) arguments[3];
    arguments[3] =
        scala.Option.apply(condition.isEmpty() ? same : (Expression) new And((Expression) condition.get(), same));
    return (LogicalPlan) plan.makeCopy(arguments);
  }

  private static void requireRowWise(LogicalPlan plan) throws Exception {
    ArrayList waiting = listed(plan.expressions());
    while (!waiting.isEmpty()) {
      Expression expression = (Expression) waiting.remove(waiting.size() - 1);
      if (!expression.deterministic()) {
        throw new IllegalArgumentException(expression + " is not the same every time");
      }
      String kind = expression.getClass().getSimpleName();
      if (kind.startsWith("Current") || kind.equals("Now") || kind.equals("LocalTimestamp")) {
        throw new IllegalArgumentException(expression + " is another one in every batch");
      }
      if (kind.startsWith("Python")) {
        Object type = expression.getClass().getMethod("evalType", new Class[0]).invoke(expression, new Object[0]);
        if (!ROW_WISE_PYTHON.contains(type)) {
          throw new IllegalArgumentException(expression + " may look at other rows of its batch");
        }
      }
      waiting.addAll(listed(expression.children()));
    }
  }

  private static Attribute find(LogicalPlan plan, String column) {
    ArrayList all = listed(plan.output());
    for (int a = 0; a < all.size(); a++) {
      if (((Attribute) all.get(a)).name().equals(column)) {
        return (Attribute) all.get(a);
      }
    }
    return null;
  }

  private static Object[] arguments(LogicalPlan plan) {
    Object[] arguments = new Object[plan.productArity()];
    for (int a = 0; a < arguments.length; a++) {
      arguments[a] = plan.productElement(a);
    }
    return arguments;
  }

  private static ArrayList listed(scala.collection.Seq seq) {
    return new ArrayList(scala.jdk.javaapi.CollectionConverters.asJava(seq));
  }

  private static scala.collection.immutable.Seq seq(List list) {
    return scala.jdk.javaapi.CollectionConverters.asScala(new ArrayList(list)).toList();
  }
}
